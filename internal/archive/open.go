package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// What the stream may hold beyond the bodies of files: some at its end, and some a header.
const (
	slackArchive = 1 << 20
	slackEntry   = 16 << 10
)

// Open reads a whole tar.gz, keeps the bodies of its files in an unnamed temporary file in dir (the system's
// folder for these if empty), and gives the archive as a file system. Folders that have no entry of their own are
// made up. Of modes only the executable bit is kept.
//
// The error is ErrLimit as soon as the stream exceeds a limit, ErrUnsafe on an entry that is no regular file or
// folder, is sparse, has an absolute name, one with "..", a backslash or a zero byte, or a name that is taken, and
// ErrCorrupt on anything that is not exactly one whole archive. Nothing is left behind then.
func Open(ctx context.Context, src io.Reader, dir string, limits Limits) (*Tree, error) {
	spool, err := newSpool(dir)
	if err != nil {
		return nil, fmt.Errorf("spool archive: %w", err)
	}
	r := &reader{
		root:   newFolder(root),
		limits: limits.orDefault(),
		out:    bufio.NewWriterSize(spool, bufferSize),
		buffer: make([]byte, bufferSize),
	}
	if err := r.read(ctx, src); err != nil {
		return nil, errors.Join(classify(err), spool.Close())
	}
	r.root.sort()
	return &Tree{spool: spool, root: r.root}, nil
}

// newSpool makes a file that has no name any more, so that a crash leaves nothing behind either.
func newSpool(dir string) (*os.File, error) {
	spool, err := os.CreateTemp(dir, "archive-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(spool.Name()); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return spool, nil
}

type reader struct {
	root   *node
	limits Limits
	out    *bufio.Writer
	buffer []byte
	stream *boundedReader
	files  int
	bytes  int64
}

func (r *reader) read(ctx context.Context, src io.Reader) error {
	packed, err := gzip.NewReader(&cancelReader{ctx: ctx, src: src})
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	r.stream = &boundedReader{src: packed, left: slackArchive}
	entries := tar.NewReader(r.stream)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := r.entry(header, entries); err != nil {
			return fmt.Errorf("read %.256q: %w", header.Name, err)
		}
	}
	if err := r.drain(); err != nil {
		return fmt.Errorf("read the end of the archive: %w", err)
	}
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("spool archive: %w", err)
	}
	return nil
}

func (r *reader) spool(body io.Reader, size int64) error {
	for size > 0 {
		n, err := body.Read(r.buffer[:min(size, bufferSize)])
		if _, err := r.out.Write(r.buffer[:n]); err != nil {
			return fmt.Errorf("spool archive: %w", err)
		}
		if size -= int64(n); size > 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// drain reads the stream to its end, where its checksum is. Tar pads archives with zeros; nothing else may follow.
func (r *reader) drain() error {
	for {
		n, err := r.stream.Read(r.buffer)
		for _, b := range r.buffer[:n] {
			if b != 0 {
				return fmt.Errorf("%w: something follows it", ErrCorrupt)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
