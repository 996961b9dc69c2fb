package local

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/storagetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T, now func() time.Time) storage.Store {
		t.Helper()
		dir := t.TempDir()
		return damageable{Store: open(t, dir, Options{Now: now}), dir: dir}
	})
}

// damageable lets the suite edit files behind the store's back.
type damageable struct {
	*Store
	dir string
}

func (d damageable) Damage(name string) error {
	body, err := d.Open(context.Background(), name)
	if err != nil {
		return err
	}
	defer body.Close()
	return flip(filepath.Join(d.dir, blobPath(body.Stat().Digest)))
}

func open(t *testing.T, dir string, options Options) *Store {
	t.Helper()
	store, err := Open(dir, options)
	if err != nil {
		t.Fatalf("Open %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return store
}

// flip changes one bit in the middle of a file, in place.
func flip(name string) error {
	if err := os.Chmod(name, 0o600); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	at := info.Size() / 2
	one := make([]byte, 1)
	if _, err := file.ReadAt(one, at); err != nil {
		return err
	}
	one[0] ^= 1
	_, err = file.WriteAt(one, at)
	return err
}
