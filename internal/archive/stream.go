package archive

import (
	"archive/tar"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// boundedReader gives out what is left of the stream's allowance, which each entry adds to.
type boundedReader struct {
	src  io.Reader
	left int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("%w: the archive holds too much beside its files", ErrLimit)
	}
	n, err := r.src.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// cancelReader ends with its context.
type cancelReader struct {
	ctx context.Context
	src io.Reader
}

func (r *cancelReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
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
