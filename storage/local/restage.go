package local

import (
	"context"
	"fmt"

	"sluice.dev/sluice/storage"
)

// Restage implements storage.Writer. It costs no bytes: the body's blob is there already.
func (s *Store) Restage(ctx context.Context, body storage.Staged) error {
	if err := s.beginWriting(ctx); err != nil {
		return err
	}
	if err := s.keep(storage.Artifact{Digest: body.Digest, Size: body.Size}); err != nil {
		return fmt.Errorf("restage: %w", err)
	}
	if body.Companion == (storage.Companion{}) {
		return nil
	}
	if err := s.keep(companionOf(body.Companion)); err != nil {
		s.staged.drop(body.Digest)
		return fmt.Errorf("restage the companion: %w", err)
	}
	return nil
}
