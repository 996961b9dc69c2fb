package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"sluice.dev/sluice/storage"
)

// Stage implements storage.Writer. The body is hashed while it is written, so it is never read back.
func (s *Store) Stage(ctx context.Context, limit int64, write func(io.Writer) error) (storage.Staged, error) {
	if limit < 0 {
		return storage.Staged{}, fmt.Errorf("stage: limit %d is negative", limit)
	}
	if err := s.beginWriting(ctx); err != nil {
		return storage.Staged{}, err
	}
	var staged storage.Staged
	tmp, done, err := s.disk.writeAside(bodyMode, func(file *os.File) error {
		var err error
		staged, err = s.pour(ctx, file, limit, write)
		return err
	})
	if err != nil {
		return storage.Staged{}, fmt.Errorf("stage: %w", err)
	}
	defer done()
	if err := s.adopt(tmp, staged); err != nil {
		return storage.Staged{}, fmt.Errorf("stage %s: %w", staged.Digest, err)
	}
	return staged, nil
}

// Discard implements storage.Writer. Discarding a body that others staged too, or that is published, keeps it.
func (s *Store) Discard(ctx context.Context, staged storage.Staged) error {
	if err := staged.Digest.Validate(); err != nil {
		return fmt.Errorf("discard %q: %w", staged.Digest, err)
	}
	if err := s.beginWriting(ctx); err != nil {
		return err
	}
	for _, d := range bodies(staged.Digest, staged.Companion) {
		s.staged.drop(d)
		if err := s.reap(d); err != nil {
			return fmt.Errorf("discard %s: %w", d, err)
		}
	}
	return nil
}

func (s *Store) pour(ctx context.Context, file *os.File, limit int64, write func(io.Writer) error) (storage.Staged, error) {
	hash := s.options.Algorithm.Digester()
	buffered := bufio.NewWriterSize(io.MultiWriter(file, hash.Hash()), 64<<10)
	body := &limitedWriter{ctx: ctx, to: buffered, limit: limit}
	err := write(body)
	if body.err != nil {
		// It decides, whatever write made of it.
		return storage.Staged{}, body.err
	}
	if err := errors.Join(err, buffered.Flush(), ctx.Err()); err != nil {
		return storage.Staged{}, err
	}
	return storage.Staged{Digest: hash.Digest(), Size: body.written}, nil
}

// limitedWriter refuses what goes beyond the limit or comes after the context's end, and stays at that.
type limitedWriter struct {
	ctx            context.Context //nolint:containedctx // It lives for one call of Stage.
	to             io.Writer
	limit, written int64
	err            error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil && w.limit > 0 && int64(len(p)) > w.limit-w.written {
		w.err = fmt.Errorf("%w of %d bytes", storage.ErrTooLarge, w.limit)
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(p)
	w.written += int64(n)
	w.err = err
	return n, err
}
