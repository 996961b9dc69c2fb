package local

import (
	"context"
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
	kept, err := s.keep(record.Current)
	if err == nil && !kept {
		staged, err = s.copyOut(ctx, record.Current)
	}
	if err != nil {
		return storage.Staged{}, fmt.Errorf("restage %s: %w", record.Current.Digest, err)
	}
	return staged, nil
}

// keep claims the body's blob if it is still there.
func (s *Store) keep(artifact storage.Artifact) (bool, error) {
	defer s.digests.lock(artifact.Digest)()
	kept, err := s.holds(blobPath(artifact.Digest), artifact)
	if kept {
		s.staged.add(artifact.Digest, s.options.Now())
	}
	return kept, err
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
