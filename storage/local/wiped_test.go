package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/storage"
)

func TestAStorageWipedUnderItsWriterIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		lost   []string
	}{
		"Everything":  {"An operator empties the volume.", []string{ownDir}},
		"Records":     {"Only the records go.", []string{recordsDir}},
		"Lock":        {"Only the lock goes.", []string{lockFile}},
		"Temporary":   {"Only the folder of unfinished files goes.", []string{tmpDir}},
		"Blobs":       {"Only the bodies go.", []string{blobsDir}},
		"LockAndTemp": {"The lock goes with the folder of unfinished files.", []string{lockFile, tmpDir}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			dir := t.TempDir()
			store := open(t, dir, Options{})
			publish(t, store, podinfo, "hello")
			for _, lost := range tc.lost {
				if err := os.RemoveAll(filepath.Join(dir, lost)); err != nil {
					t.Fatal(err)
				}
			}
			path := publish(t, store, podinfo, "hello").Current.Path
			if content, err := read(store, path); content != "hello" {
				t.Errorf("Open: %q, %v", content, err)
			}
			if name == "Everything" {
				wantTidy(t, store, dir)
			}
			second := open(t, dir, Options{})
			if _, err := second.Stage(t.Context(), 0, writing("x")); !errors.Is(err, storage.ErrInUse) {
				t.Errorf("A second process: want %v, got %v", storage.ErrInUse, err)
			}
		})
	}
}

// TestASweepClosesWhatOthersRemoved: it would keep its bytes on the disk that an operator has emptied to make room.
func TestASweepClosesWhatOthersRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	gone := publish(t, store, podinfo, "hello").Current
	for _, path := range []string{gone.Path, publish(t, store, twin, "fine").Current.Path} {
		if _, err := read(store, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, blobPath(gone.Digest))); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SweepOrphans(t.Context(), func(storage.Object, string) bool { return true }, 0); err != nil {
		t.Fatal(err)
	}
	if store.opened.Contains(gone.Digest) || store.opened.Len() != 1 {
		t.Errorf("%v are open", store.opened.Keys())
	}
}

func TestWhoLosesTheLockDoesNotWriteBesideItsNextOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir, Options{})
	second, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, first, podinfo, "hello")
	if err := os.RemoveAll(filepath.Join(dir, ownDir)); err != nil {
		t.Fatal(err)
	}
	publish(t, second, podinfo, "mine now")
	if _, err := first.Stage(t.Context(), 0, writing("x")); !errors.Is(err, storage.ErrInUse) {
		t.Errorf("Stage: want %v, got %v", storage.ErrInUse, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	publish(t, first, podinfo, "mine again")
	wantTidy(t, first, dir)
}
