package rebuild

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"sluice.dev/sluice/internal/archive"
)

// Difference is the first file in which two archives of files, each a tar.gz, are not the same; "" where their files are. They are
// read side by side, since archives of one tree have their files in one order. An error says that the first cannot be read.
func Difference(served, made io.Reader) (string, error) {
	ours, err := open(made)
	if err != nil {
		return "", err
	}
	theirs, err := open(served)
	if err != nil {
		return "the archive itself: " + err.Error(), nil //nolint:nilerr // A broken archive is what is looked for.
	}
	where, err := first(ours, theirs)
	if where == "" && err == nil && !bytes.Equal(ours.sum.Sum(nil), theirs.sum.Sum(nil)) {
		// Readers of tar pass over what stands in headers that they know nothing of, and behind the end.
		return "none by its content: what stands between the files, or behind the last one, is other", nil
	}
	return where, err
}

// first is the first file that differs.
func first(ours, theirs files) (string, error) {
	for {
		want, wantErr := entry(ours)
		got, gotErr := entry(theirs)
		switch {
		case errors.Is(wantErr, io.EOF) && errors.Is(gotErr, io.EOF):
			return "", nil
		case errors.Is(wantErr, io.EOF) && gotErr != nil:
			return gotErr.Error(), nil //nolint:nilerr // So is a broken file.
		case errors.Is(wantErr, io.EOF):
			return got.name + ", which upstream does not have", nil
		case wantErr != nil:
			return "", fmt.Errorf("read what was rebuilt: %w", wantErr)
		case errors.Is(gotErr, io.EOF):
			return want.name + ", which is missing", nil
		case gotErr != nil:
			return want.name + ", or before it: " + gotErr.Error(), nil //nolint:nilerr // So is a broken file.
		case got != want && got.name == want.name:
			return want.name, nil
		case got != want:
			return want.name + ", in whose place is " + got.name, nil
		}
	}
}

// files are those of an archive, and the sum of all that was read of it, uncompressed.
type files struct {
	*tar.Reader

	plain io.Reader
	sum   hash.Hash
}

func open(compressed io.Reader) (files, error) {
	plain, err := gzip.NewReader(compressed)
	if err != nil {
		return files{}, fmt.Errorf("read the archive: %w", err)
	}
	sum := sha256.New()
	hashed := io.TeeReader(&bounded{plain, maxPlain}, sum)
	return files{tar.NewReader(hashed), hashed, sum}, nil
}

// maxPlain is how much an archive may have in it: twice what its files may, as there are headers and ends of files between them.
const maxPlain = 2 * archive.DefaultMaxBytes

var errTooLarge = fmt.Errorf("it has more than %d MiB in it", maxPlain>>20)

// bounded ends with an error what goes on for too long: a small archive may have any size inside.
type bounded struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err //nolint:wrapcheck // The end is told apart by it.
}

// file is all that counts of an entry.
type file struct {
	name string
	link string
	kind byte
	mode int64
	sum  [sha256.Size]byte
}

// entry is the next one. At the end is the checksum of what was compressed, which counts too.
func entry(from files) (file, error) {
	header, err := from.Next()
	if errors.Is(err, io.EOF) {
		if _, broken := io.Copy(io.Discard, from.plain); broken != nil {
			return file{}, fmt.Errorf("read the end of the archive: %w", broken)
		}
	}
	if err != nil {
		return file{}, err //nolint:wrapcheck // The end is told apart by it.
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, from); err != nil {
		return file{}, fmt.Errorf("read %s: %w", header.Name, err)
	}
	one := file{name: header.Name, link: header.Linkname, kind: header.Typeflag, mode: header.Mode}
	copy(one.sum[:], sum.Sum(nil))
	return one, nil
}
