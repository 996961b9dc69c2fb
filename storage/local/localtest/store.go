// Package localtest gives tests a store of files that goes with the test.
package localtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/storage/local"
)

// Store is a local store whose files a test can damage.
type Store struct {
	*local.Store
	dir string
}

// Open opens an empty store in a folder of the test.
func Open(t *testing.T, options local.Options) *Store {
	t.Helper()
	dir := t.TempDir()
	store, err := local.Open(dir, options)
	if err != nil {
		t.Fatalf("open a store: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &Store{Store: store, dir: dir}
}

// Damage flips a bit of the body under the path, as a failing disk would.
func (s *Store) Damage(path string) error {
	stored, err := s.Open(context.Background(), path)
	if err != nil {
		return err
	}
	digest := stored.Stat().Digest
	if err := stored.Close(); err != nil {
		return err
	}
	name := filepath.Join(s.dir, ".sluice/blobs", digest.Algorithm().String(), digest.Encoded())
	body, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	body[len(body)/2] ^= 1
	if err := os.Chmod(name, 0o600); err != nil {
		return err
	}
	return os.WriteFile(name, body, 0o600)
}
