package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// sameFiles compares the files of two archives by name and content: a figure for other work would mean nothing.
func sameFiles(ours, theirs string) error {
	a, err := digests(ours)
	if err != nil {
		return err
	}
	b, err := digests(theirs)
	if err != nil {
		return err
	}
	for name, digest := range b {
		if a[name] != digest {
			return fmt.Errorf("%q differs between the artifacts", name)
		}
	}
	if len(a) != len(b) {
		return fmt.Errorf("the artifacts hold %d and %d files", len(a), len(b))
	}
	return nil
}

// digests are the digests of the regular files in a tar.gz, by name.
func digests(path string) (map[string][sha256.Size]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	found := map[string][sha256.Size]byte{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, archive); err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
		found[strings.TrimPrefix(header.Name, "./")] = [sha256.Size]byte(hash.Sum(nil))
	}
}
