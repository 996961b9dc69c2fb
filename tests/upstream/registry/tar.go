package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Entry is an entry of a layer's tar file, with any header that there is.
type Entry struct {
	// Header is written as it is, but that Size is the length of Content, the mode 0644 (0755 for folders) and the
	// time 2020 where they are zero.
	Header  tar.Header
	Content []byte
	// Raw replaces header and content: blocks of 512 bytes that archive/tar might refuse to write.
	Raw []byte
}

// File is a plain file.
func File(name, content string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: name}, Content: []byte(content)}
}

// Folder is a folder.
func Folder(name string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name + "/"}}
}

// Symlink is a symbolic link.
func Symlink(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}}
}

// Hardlink is another name of an earlier file.
func Hardlink(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}}
}

// Special is an entry without content of that type: a device or a FIFO.
func Special(name string, typeflag byte) Entry {
	return Entry{Header: tar.Header{Typeflag: typeflag, Name: name, Devmajor: 1, Devminor: 3}}
}

// Files are plain files in the order of their names.
func Files(contents map[string]string) []Entry {
	entries := make([]Entry, 0, len(contents))
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		entries = append(entries, File(name, contents[name]))
	}
	return entries
}

// Tar writes a tar file. The same entries give the same bytes.
func Tar(entries ...Entry) ([]byte, error) {
	var file bytes.Buffer
	for _, entry := range entries {
		if entry.Raw != nil {
			file.Write(entry.Raw)
			continue
		}
		if err := write(&file, entry); err != nil {
			return nil, fmt.Errorf("write entry %q: %w", entry.Header.Name, err)
		}
	}
	file.Write(make([]byte, 2*blockSize))
	return file.Bytes(), nil
}

// write uses a writer for each entry, so that raw blocks may stand between them.
func write(file *bytes.Buffer, entry Entry) error {
	header := entry.Header
	header.Size = int64(len(entry.Content))
	if header.Mode == 0 {
		header.Mode = 0o644
		if header.Typeflag == tar.TypeDir {
			header.Mode = 0o755
		}
	}
	if header.ModTime.IsZero() {
		header.ModTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	w := tar.NewWriter(file)
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := w.Write(entry.Content); err != nil {
		return err
	}
	return w.Flush()
}

// Gzip compresses; the same bytes give the same bytes.
func Gzip(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Zstd compresses; the same bytes give the same bytes.
func Zstd(content []byte) ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.EncodeAll(content, nil), nil
}

// TarGzip is Tar and Gzip.
func TarGzip(entries ...Entry) ([]byte, error) {
	file, err := Tar(entries...)
	if err != nil {
		return nil, err
	}
	return Gzip(file)
}
