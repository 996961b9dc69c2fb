package archive

import (
	"archive/tar"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// source is an archive as it comes in. It ends with its context, and remembers why the end was not reached: decoders take
// some errors for a clean end and others for damage.
type source struct {
	ctx     context.Context
	src     io.Reader
	failure error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.failure = err
		return 0, err
	}
	n, err := s.src.Read(p)
	if err != nil && err != io.EOF {
		// The end is io.EOF itself; an error that wraps it is a failure.
		s.failure = err
	}
	return n, err
}

// boundedReader gives out what is left of the stream's allowance, which each entry adds to.
type boundedReader struct {
	src   io.Reader
	left  int64
	total int64 // bytes given out
	zeros int64 // zero bytes at the end of them
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("%w: the archive holds too much beside its files", ErrLimit)
	}
	n, err := r.src.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.total += int64(n)
	r.zeros += int64(n)
	if rest := bytes.TrimRight(p[:n], "\x00"); len(rest) > 0 {
		r.zeros = int64(n - len(rest))
	}
	return n, err
}

// classify marks the errors of the tar and gzip readers as damage.
func classify(err error) error {
	for _, damage := range []error{
		gzip.ErrHeader, gzip.ErrChecksum, tar.ErrHeader, tar.ErrFieldTooLong, io.ErrUnexpectedEOF, io.EOF,
	} {
		if errors.Is(err, damage) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if _, ok := errors.AsType[flate.CorruptInputError](err); ok {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
