package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// edits are the ways to spoil a stored file behind the store's back.
func edits() map[string]func(name string) error {
	return map[string]func(name string) error{
		"Flipped":   flip,
		"Truncated": resize(2),
		"Emptied":   resize(0),
		"Longer":    resize(1 << 10),
		"Replaced": func(name string) error {
			return errors.Join(os.Remove(name), os.WriteFile(name, []byte("HELLO"), 0o600))
		},
		"Link": func(name string) error {
			return errors.Join(os.Remove(name), os.Symlink("/etc/passwd", name))
		},
		"Folder": func(name string) error {
			return errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o700))
		},
		"Gone": os.Remove,
	}
}

func resize(size int64) func(name string) error {
	return func(name string) error { return errors.Join(os.Chmod(name, 0o600), os.Truncate(name, size)) }
}

func TestAnEditedFileIsNeverServedAndIsReplaced(t *testing.T) {
	t.Parallel()
	for name, edit := range edits() {
		for _, restarted := range []bool{false, true} {
			label := name
			if restarted {
				label += "WhileDown"
			}
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				var seen watch
				first, err := Open(dir, Options{OnDamage: seen.onDamage})
				if err != nil {
					t.Fatal(err)
				}
				published := publish(t, first, podinfo, "hello").Current
				path, blob := published.Path, blobPath(published.Digest)
				store := first
				if restarted {
					if err := first.Close(); err != nil {
						t.Fatal(err)
					}
					store = open(t, dir, Options{OnDamage: seen.onDamage})
				} else {
					t.Cleanup(func() { _ = first.Close() })
				}
				if err := edit(filepath.Join(dir, blob)); err != nil {
					t.Fatal(err)
				}

				for range 3 {
					if _, err := read(store, path); !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
						t.Errorf("Open: got %v", err)
					}
				}
				if _, err := read(store, path); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("Open after the damage was seen: got %v", err)
				}
				if _, err := store.Record(t.Context(), podinfo); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("Record: got %v", err)
				}
				isDamage := name != "Gone" && name != "Link" && name != "Folder"
				if isDamage != (seen.count() == 1) {
					t.Errorf("OnDamage was told %d times", seen.count())
				}

				publish(t, store, podinfo, "hello")
				wantTidy(t, store, dir)
			})
		}
	}
}

func TestAFileIsReadOnlyWhenItIsNotKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, first, podinfo, "hello")
	publish(t, first, twin, "hello")
	known := func(store *Store) verdict {
		id, err := store.disk.identify(blobPath(digest.FromString("hello")))
		if err != nil {
			t.Fatal(err)
		}
		return store.verdicts.of(id, digest.FromString("hello"))
	}
	if known(first) != intact {
		t.Error("What this process wrote has to be read again")
	}
	if err := first.Delete(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	if known(first) != intact {
		t.Error("Another object's removal makes this one's file unknown")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir, Options{})
	if known(second) != unknown {
		t.Error("A new process trusts a file that it has not read")
	}
	if _, err := second.Record(t.Context(), podinfo); err != nil {
		t.Fatal(err)
	}
	if known(second) != intact {
		t.Error("A new process has to read the file each time")
	}
}

func TestScrubFindsRotThatLeavesNoTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var seen watch
	store := open(t, dir, Options{OnDamage: seen.onDamage})
	lost := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "lost"}
	rotten := blobPath(publish(t, store, podinfo, "hello").Current.Digest)
	publish(t, store, twin, "fine")
	missing := blobPath(publish(t, store, lost, "lost").Current.Digest)
	if err := errors.Join(flip(filepath.Join(dir, rotten)), os.Remove(filepath.Join(dir, missing))); err != nil {
		t.Fatal(err)
	}
	// A rotten disk changes no times: to the store the file looks as it did when it was last hashed.
	if err := store.trust(digest.FromString("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Record(t.Context(), podinfo); err != nil {
		t.Fatalf("The test has to hide the damage: %v", err)
	}

	checked, damagedObjects, err := store.Scrub(t.Context())
	if err != nil {
		t.Fatalf("Scrub: %v", err)
	}
	if diff := cmp.Diff([]storage.Object{lost, podinfo}, damagedObjects); diff != "" || checked != 2 {
		t.Errorf("Scrub checked %d; damaged: -want, +got:\n%s", checked, diff)
	}
	if seen.count() != 2 {
		t.Errorf("OnDamage: want two objects, got %v", seen.told)
	}
	if exists(dir, rotten) {
		t.Error("The damaged file is still there")
	}
	publish(t, store, podinfo, "hello")
	publish(t, store, lost, "lost")
	if checked, damagedObjects, err := store.Scrub(t.Context()); checked != 3 || len(damagedObjects) != 0 || err != nil {
		t.Errorf("Scrub after the repair: %d, %v, %v", checked, damagedObjects, err)
	}
	wantTidy(t, store, dir)
}

func TestADamagedStagedBodyIsNotPublished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	staged := stage(t, store, "hello")
	if err := flip(filepath.Join(dir, blobPath(staged.Digest))); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Publish(t.Context(), podinfo, staged, recordFor(podinfo, "hello")); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("Publish: want %v, got %v", storage.ErrDamaged, err)
	}
	if record, err := store.Record(t.Context(), podinfo); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Published: %v, %v", record, err)
	}
	publish(t, store, podinfo, "hello")
	wantTidy(t, store, dir)
}

func TestVerdictsAreBounded(t *testing.T) {
	t.Parallel()
	known := newVerdicts()
	for i := range uint64(maxVerdicts + 100) {
		known.remember(identity{ino: i}, "sha256:0", intact)
	}
	if known.files.Len() != maxVerdicts {
		t.Errorf("want %d verdicts, got %d", maxVerdicts, known.files.Len())
	}
}

func TestAnUnreadableRecordIsReplaced(t *testing.T) {
	t.Parallel()
	spoil := edits()
	delete(spoil, "Folder") // It takes the place of the record's file; RemoveAll is for operators.
	for name, edit := range spoil {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store := open(t, dir, Options{})
			path := publish(t, store, podinfo, "hello").Current.Path
			if err := edit(filepath.Join(dir, recordPath(podinfo))); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Record(t.Context(), podinfo); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Record: want %v, got %v", storage.ErrNotFound, err)
			}
			if _, err := read(store, path); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Open: want %v, got %v", storage.ErrNotFound, err)
			}
			publish(t, store, podinfo, "hello")
			wantTidy(t, store, dir)
		})
	}
}

func TestARecordOfAnotherFormatIsNotRead(t *testing.T) {
	t.Parallel()
	other := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "other"}
	good, err := encodeRecord(storage.Record{Current: storage.Artifact{
		Path: podinfo.File("a"), Digest: digest.FromString("hello"), Size: 5,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeRecord(podinfo, good); err != nil {
		t.Fatalf("A good record: %v", err)
	}
	escaping, err := encodeRecord(storage.Record{Current: storage.Artifact{Path: podinfo.File("a"), Digest: "sha256:../../x"}})
	if err != nil {
		t.Fatal(err)
	}
	later := append([]byte(`{"version":2,`), good[len(`{"version":1,`):]...)
	for reason, tc := range map[string]struct {
		object storage.Object
		text   []byte
	}{
		"It belongs to another object.": {other, good},
		"Its digest is a path.":         {podinfo, escaping},
		"It is of a later version.":     {podinfo, later},
		"It is no JSON.":                {podinfo, []byte("\x00\x00")},
		"It is empty JSON.":             {podinfo, []byte("{}")},
		"It is empty.":                  {podinfo, nil},
		"It goes on after its end.":     {podinfo, append(append([]byte{}, good...), good...)},
	} {
		if _, err := decodeRecord(tc.object, tc.text); err == nil {
			t.Errorf("%s It was read all the same.", reason)
		}
	}
}
