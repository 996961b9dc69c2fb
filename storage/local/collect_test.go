package local

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/storage"
)

func TestCollectMakesRoomOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		dir := t.TempDir()
		clock := &clock{now: noon}
		store := open(t, dir, Options{Now: clock.Now})
		old := publish(t, store, podinfo, "old").Current
		publish(t, store, podinfo, "new")
		supersede(t, store)
		clock.step(time.Hour)
		store.disk.before = func(op, name string) error {
			if op == "create" && exists(dir, blobPath(old.Digest)) {
				return &os.PathError{Op: "open", Path: name, Err: full}
			}
			return nil
		}
		removed, err := store.Collect(t.Context(), podinfo, "")
		if err != nil || len(removed) != 1 || removed[0].Path != old.Path {
			t.Errorf("%v: Collect: %v, %v", full, removed, err)
		}
		record, err := store.Record(t.Context(), podinfo)
		if err != nil || len(record.Superseded) != 0 {
			t.Errorf("%v: Record: %v, %v", full, record, err)
		}
		wantTidy(t, store, dir)
	}
}

// TestAFullDiskKeepsNoTime: when it was found full, no record could say since when status names another artifact.
func TestAFullDiskKeepsNoTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := &clock{now: noon}
	store := open(t, dir, Options{Now: clock.Now})
	old := publish(t, store, podinfo, "old").Current
	current := publish(t, store, podinfo, "new").Current
	store.disk.before = func(op, _ string) error {
		if op == "create" && exists(dir, blobPath(old.Digest)) {
			return syscall.ENOSPC
		}
		return nil
	}
	if removed, err := store.Collect(t.Context(), podinfo, current.Path); !errors.Is(err, syscall.ENOSPC) || len(removed) != 0 {
		t.Errorf("Collect at once: %v, %v", removed, err)
	}
	clock.step(time.Hour)
	if removed, err := store.Collect(t.Context(), podinfo, current.Path); err != nil || len(removed) != 1 {
		t.Errorf("Collect an hour later: %v, %v", removed, err)
	}
	wantTidy(t, store, dir)
}

// supersede begins the time of what is no longer current.
func supersede(t *testing.T, store *Store) {
	t.Helper()
	if removed, err := store.Collect(t.Context(), podinfo, ""); err != nil || len(removed) != 0 {
		t.Fatalf("Collect: %v, %v", removed, err)
	}
}

func TestCollectOnADiskThatStaysFullHarmsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := &clock{now: noon}
	store := open(t, dir, Options{Now: clock.Now})
	old := publish(t, store, podinfo, "old").Current
	current := publish(t, store, podinfo, "new").Current
	supersede(t, store)
	clock.step(time.Hour)
	store.disk.before = func(op, _ string) error {
		if op == "create" {
			return syscall.ENOSPC
		}
		return nil
	}
	for range 2 {
		if _, err := store.Collect(t.Context(), podinfo, ""); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Collect: want %v, got %v", syscall.ENOSPC, err)
		}
		if exists(dir, blobPath(old.Digest)) {
			t.Error("The garbage is still there")
		}
		if _, err := read(store, old.Path); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Open of what is gone: want %v, got %v", storage.ErrNotFound, err)
		}
		if content, err := read(store, current.Path); content != "new" {
			t.Errorf("Open: %q, %v", content, err)
		}
	}
	store.disk.before = func(string, string) error { return nil }
	if _, err := store.Collect(t.Context(), podinfo, ""); err != nil {
		t.Errorf("Collect with room: %v", err)
	}
	wantTidy(t, store, dir)
}
