package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/storage"
)

// Restage implements storage.Writer. Where files are linked it costs no bytes: the body's blob is there already.
func (s *Store) Restage(ctx context.Context, object storage.Object) (storage.Staged, error) {
	if err := s.beginWriting(); err != nil {
		return storage.Staged{}, err
	}
	record, err := s.Record(ctx, object)
	if err != nil {
		return storage.Staged{}, fmt.Errorf("restage: %w", err)
	}
	staged := storage.Staged{Digest: record.Current.Digest, Size: record.Current.Size}
	kept, err := s.keep(staged)
	if kept || err != nil {
		return staged, err
	}
	again, err := s.copyOut(ctx, record.Current)
	if err != nil {
		return storage.Staged{}, fmt.Errorf("restage %s: %w", staged.Digest, err)
	}
	return again, nil
}

// keep claims the body's blob if it is still there.
func (s *Store) keep(staged storage.Staged) (bool, error) {
	defer s.digests.lock(staged.Digest)()
	blob, err := s.openIntact(blobPath(staged.Digest), storage.Artifact{Digest: staged.Digest, Size: staged.Size})
	if blob != nil {
		defer blob.Close()
	}
	switch {
	case err == nil:
		s.staged.add(staged.Digest, s.options.Now())
		return true, nil
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
		return false, nil
	default:
		return false, fmt.Errorf("restage %s: %w", staged.Digest, err)
	}
}

// copyOut stages a copy of a published body.
func (s *Store) copyOut(ctx context.Context, artifact storage.Artifact) (storage.Staged, error) {
	body, err := s.Open(ctx, artifact.Path)
	if err != nil {
		return storage.Staged{}, err
	}
	defer body.Close()
	return s.Stage(ctx, 0, func(w io.Writer) error {
		_, err := io.Copy(w, body)
		return err
	})
}
