package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := Open(filepath.Join(t.TempDir(), "absent"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("A folder that does not exist: got %v", err)
	}
	if _, err := Open(t.TempDir(), Options{Algorithm: "blake3"}); err == nil || !strings.Contains(err.Error(), `"blake3"`) {
		t.Errorf("An algorithm that is not offered: got %v", err)
	}
}

func TestChangingTheAlgorithmKeepsWhatIsStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, algorithm := range []digest.Algorithm{"", digest.SHA384, digest.SHA512} {
		store, err := Open(dir, Options{Algorithm: algorithm})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Repeat("x", i+1)
		record := publish(t, store, podinfo, body)
		if want := max(algorithm, digest.SHA256); record.Current.Digest != want.FromString(body) {
			t.Errorf("Digest: want %s, got %s", want, record.Current.Digest)
		}
		for _, artifact := range artifacts(record) {
			if content, err := read(store, artifact.Path); artifact.Digest.Algorithm().FromString(content) != artifact.Digest {
				t.Errorf("%s: %v", artifact.Path, err)
			}
		}
		wantTidy(t, store, dir)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyOneMayWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer := open(t, dir, Options{})
	path := publish(t, writer, podinfo, "hello").Current.Path
	other, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func() error{
		"Stage": func() error { _, err := other.Stage(t.Context(), 0, writing("x")); return err },
		"Publish": func() error {
			_, err := other.Publish(t.Context(), podinfo, storage.Staged{Digest: digest.FromString("x")}, recordFor(podinfo, "x"))
			return err
		},
		"Discard": func() error { return other.Discard(t.Context(), storage.Staged{Digest: digest.FromString("x")}) },
		"Collect": func() error { _, err := other.Collect(t.Context(), podinfo, ""); return err },
		"Delete":  func() error { return other.Delete(t.Context(), podinfo) },
		"Sweep":   func() error { _, err := other.SweepOrphans(t.Context(), nil, 0); return err },
	} {
		if err := write(); !errors.Is(err, storage.ErrInUse) {
			t.Errorf("%s beside the writer: want %v, got %v", name, storage.ErrInUse, err)
		}
	}
	if content, err := read(other, path); content != "hello" {
		t.Errorf("Reading beside the writer: %q, %v", content, err)
	}
	if _, err := other.Record(t.Context(), podinfo); err != nil {
		t.Errorf("Record beside the writer: %v", err)
	}
	if err := writer.lock.release(); err != nil {
		t.Fatal(err)
	}
	publish(t, other, podinfo, "mine now")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := read(writer, pathFor(podinfo, "mine now")); content != "mine now" {
		t.Errorf("What the other wrote: %q, %v", content, err)
	}
}

func TestReadersWriteNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	_, recordErr := store.Record(t.Context(), podinfo)
	_, readErr := read(store, podinfo.File("a"))
	objects, objectsErr := store.Objects(t.Context())
	bytes, count, usageErr := store.Usage(t.Context())
	checked, _, scrubErr := store.Scrub(t.Context())
	if !errors.Is(recordErr, storage.ErrNotFound) || !errors.Is(readErr, storage.ErrNotFound) {
		t.Errorf("Record and Open of nothing: %v, %v", recordErr, readErr)
	}
	if err := errors.Join(objectsErr, usageErr, scrubErr); err != nil || len(objects)+int(bytes)+count+checked != 0 {
		t.Errorf("An empty storage: %v, %d, %d, %d, %v", objects, bytes, count, checked, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("Reading left %v, %v", entries, err)
	}
}

func TestABodyIsStoredOnceUnderItsDigestAndNobodyMayWriteIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	blob := blobPath(publish(t, store, podinfo, "hello").Current.Digest)
	publish(t, store, twin, "hello")
	want := []string{blob, lockFile, recordPath(podinfo), recordPath(twin)}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("Stored: -want, +got:\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(dir, blob))
	if err != nil || info.Mode().Perm() != 0o440 {
		t.Errorf("The body: %v, %v", info, err)
	}
}

func TestABodyGoesWithItsLastName(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"Running": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			path := publish(t, store, podinfo, "hello").Current.Path
			publish(t, store, twin, "hello")
			if restarted {
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				store = open(t, dir, Options{})
			} else {
				t.Cleanup(func() { _ = store.Close() })
			}
			if err := store.Delete(t.Context(), twin); err != nil {
				t.Fatal(err)
			}
			if content, err := read(store, path); content != "hello" {
				t.Errorf("What is left: %q, %v", content, err)
			}
			if err := store.Delete(t.Context(), podinfo); err != nil {
				t.Fatal(err)
			}
			wantTidy(t, store, dir)
		})
	}
}

func TestAReaderSeesWhatAnotherProcessPublishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer, reader := open(t, dir, Options{}), open(t, dir, Options{})
	for _, body := range []string{"first", "other", "third"} {
		path := publish(t, writer, podinfo, body).Current.Path
		for _, name := range []string{path, podinfo.File(storage.LatestFile)} {
			for range 2 { // It remembers what it has read.
				if content, err := read(reader, name); content != body {
					t.Errorf("%s: want %q, got %q, %v", name, body, content, err)
				}
			}
		}
	}
	if err := writer.Delete(t.Context(), podinfo); err != nil {
		t.Fatal(err)
	}
	if _, err := read(reader, pathFor(podinfo, "third")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("What was deleted: %v", err)
	}
}

func TestARecordIsReadOnceWhileItIsTheSame(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	path := publish(t, store, podinfo, "hello").Current.Path
	opened := 0
	store.disk.opening = func(name string) error {
		if name == recordPath(podinfo) {
			opened++
		}
		return nil
	}
	for range 3 {
		if content, err := read(store, path); content != "hello" {
			t.Fatalf("%q, %v", content, err)
		}
	}
	if opened != 1 {
		t.Errorf("The record was read %d times", opened)
	}
}

// TestAnyStepMayFail makes each change to the disk fail once: the call fails, nothing is torn, the next try succeeds.
func TestAnyStepMayFail(t *testing.T) {
	t.Parallel()
	for failing := 1; ; failing++ {
		dir := t.TempDir()
		clock := &clock{now: noon}
		store := open(t, dir, Options{Now: clock.Now})
		old := publish(t, store, podinfo, "old").Current
		steps := 0
		what := ""
		store.disk.before = func(op, name string) error {
			if steps++; steps == failing {
				what = op + " " + name
				return syscall.ENOSPC
			}
			return nil
		}
		attempt := func() error {
			staged, err := store.Stage(t.Context(), 0, writing("new"))
			if err != nil {
				return err
			}
			_, err = store.Publish(t.Context(), podinfo, staged, recordFor(podinfo, "new"))
			return errors.Join(err, store.Discard(t.Context(), staged))
		}
		attemptErr := attempt()
		record, err := store.Record(t.Context(), podinfo)
		if err != nil {
			t.Fatalf("step %d, %s: Record: %v", failing, what, err)
		}
		if content, err := read(store, record.Current.Path); err != nil || pathFor(podinfo, content) != record.Current.Path {
			t.Errorf("step %d, %s: the current body: %q, %v", failing, what, content, err)
		}
		if content, err := read(store, old.Path); content != "old" {
			t.Errorf("step %d, %s: the old body: %q, %v", failing, what, content, err)
		}
		if what == "" {
			if attemptErr != nil {
				t.Fatalf("Nothing failed, but: %v", attemptErr)
			}
			if failing < 10 {
				t.Errorf("Only %d steps could fail", failing-1)
			}
			return
		}
		if attemptErr != nil && !errors.Is(attemptErr, syscall.ENOSPC) {
			t.Errorf("step %d, %s: want %v, got %v", failing, what, syscall.ENOSPC, attemptErr)
		}
		if attemptErr != nil && record.Current.Path == old.Path {
			wantTidy(t, store, dir)
		}
		if err := attempt(); err != nil {
			t.Errorf("step %d, %s: the next try: %v", failing, what, err)
		}
		wantTidy(t, store, dir)
		clock.step(time.Hour)
		if _, err := store.Collect(t.Context(), podinfo, ""); err != nil {
			t.Errorf("step %d, %s: Collect: %v", failing, what, err)
		}
		wantTidy(t, store, dir)
	}
}

// TestEveryNameIsDurableBeforeItCounts follows the changes of one publication: a file is synced before it gets its
// name, each folder after it has got one, and the record comes when the body is there to stay.
func TestEveryNameIsDurableBeforeItCounts(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	publish(t, store, podinfo, "old") // The folders are there.
	var got []string
	store.disk.before = func(op, name string) error {
		if op != "mkdir" {
			got = append(got, op+" "+name)
		}
		return nil
	}
	publish(t, store, podinfo, "new")
	blob, record := blobPath(digest.FromString("new")), recordPath(podinfo)
	want := []string{
		"create .sluice/tmp/3", "sync .sluice/tmp/3", "rename " + blob, "syncdir " + filepath.Dir(blob),
		"create .sluice/tmp/4", "sync .sluice/tmp/4", "rename " + record, "syncdir " + filepath.Dir(record),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Changes: -want, +got:\n%s", diff)
	}
}

func TestABodyThatACrashLeftIsDurableBeforeItCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	publish(t, store, podinfo, "old") // The folders are there.
	blob, record := blobPath(digest.FromString("new")), recordPath(podinfo)
	// It has its name, and the folder was not durable yet.
	if err := os.WriteFile(filepath.Join(dir, blob), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	store.disk.before = func(op, name string) error {
		if op == "rename" || op == "syncdir" {
			got = append(got, op+" "+name)
		}
		return nil
	}
	publish(t, store, podinfo, "new")
	want := []string{"syncdir " + filepath.Dir(blob), "rename " + record, "syncdir " + filepath.Dir(record)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Changes: -want, +got:\n%s", diff)
	}
}

func TestAPanicLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("The panic did not come through")
			}
		}()
		_, _ = store.Stage(t.Context(), 0, func(io.Writer) error { panic("archive") })
	}()
	wantTidy(t, store, dir)
}

func TestSweepRemovesOrphansAndLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := &clock{now: noon}
	store := open(t, dir, Options{Now: clock.Now})
	object := func(name string) storage.Object {
		return storage.Object{Kind: "gitrepository", Namespace: "default", Name: name}
	}
	for _, name := range []string{"alive", "gone", "recreated", "unreadable"} {
		publish(t, store, object(name), name)
	}
	clock.step(time.Hour)
	publish(t, store, object("young"), "young")
	forgotten := stage(t, store, "forgotten")
	clock.step(time.Minute)
	fresh := stage(t, store, "fresh")

	// What is not the storage's own is left alone.
	foreign := filepath.Join(dir, "home", "user", "documents")
	if err := errors.Join(os.MkdirAll(foreign, 0o700), os.WriteFile(filepath.Join(foreign, "thesis"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, stray := range []string{
		tmpDir + "/99", blobsDir + "/sha256/junk", blobsDir + "/sha256/" + digest.FromString("unlinked").Encoded(),
		blobsDir + "/md5", recordPath(object("unreadable")),
	} {
		_ = os.Remove(filepath.Join(dir, stray))
		if err := os.WriteFile(filepath.Join(dir, stray), []byte("unlinked"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alive := func(o storage.Object, uid string) bool {
		return o.Name == "alive" && uid == "uid" || o.Name == "recreated" && uid == "another"
	}
	removed, err := store.SweepOrphans(t.Context(), alive, 30*time.Minute)
	if err != nil {
		t.Fatalf("SweepOrphans: %v", err)
	}
	if diff := cmp.Diff([]storage.Object{object("gone"), object("recreated")}, removed); diff != "" {
		t.Errorf("SweepOrphans: -want, +got:\n%s", diff)
	}
	want := []string{
		blobPath(digest.FromString("alive")), blobPath(digest.FromString("young")), blobPath(forgotten.Digest), blobPath(fresh.Digest),
		lockFile, recordPath(object("alive")), recordPath(object("young")),
		"home/user/documents/thesis",
	}
	slices.Sort(want)
	got := files(t, dir)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Left after the sweep: -want, +got:\n%s", diff)
	}

	// An hour after it was staged a body counts as forgotten.
	clock.step(time.Hour)
	if _, err := store.SweepOrphans(t.Context(), func(storage.Object, string) bool { return true }, 0); err != nil {
		t.Fatalf("SweepOrphans: %v", err)
	}
	if exists(dir, blobPath(forgotten.Digest)) || !exists(dir, blobPath(fresh.Digest)) {
		t.Error("The sweep took the wrong staged body")
	}
	for _, name := range []string{"alive", "young"} {
		if content, err := read(store, pathFor(object(name), name)); content != name {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

// TestSweepRemovesThePublicFilesOfAnEarlierVersion, which linked the bodies under their paths: they keep bytes on the
// disk that nobody can ask for.
func TestSweepRemovesThePublicFilesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	foreign := storage.Object{Kind: "home", Namespace: "user", Name: "documents"}.File("thesis")
	deleted := storage.Object{Kind: podinfo.Kind, Namespace: "deleted", Name: "meanwhile"}
	for name, published := range map[string]storage.Object{
		podinfo.File("old.tar.gz"): podinfo, twin.File("a.tar.gz"): twin, deleted.File("a.tar.gz"): deleted, foreign: podinfo,
	} {
		body := publish(t, store, published, "hello").Current
		link := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Link(filepath.Join(dir, blobPath(body.Digest)), link)); err != nil {
			t.Fatal(err)
		}
	}
	// Objects may be deleted before the first sweep.
	if err := store.Delete(t.Context(), deleted); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	isPodinfo := func(object storage.Object, _ string) bool { return object == podinfo }
	if _, err := store.SweepOrphans(t.Context(), isPodinfo, 0); err != nil {
		t.Fatalf("SweepOrphans: %v", err)
	}
	want := []string{blobPath(digest.FromString("hello")), lockFile, recordPath(podinfo), foreign}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("Left after the sweep: -want, +got:\n%s", diff)
	}
	if exists(dir, podinfo.Kind) {
		t.Error("The folders of the files stayed")
	}
}

func TestSweepDoesNotTakeWhatIsPublishedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := &clock{now: noon}
	store := open(t, dir, Options{Now: clock.Now})
	publish(t, store, podinfo, "old")
	clock.step(time.Hour)
	removed, err := store.SweepOrphans(t.Context(), func(storage.Object, string) bool {
		publish(t, store, podinfo, "new") // The object comes back while the sweep asks for it.
		return false
	}, time.Minute)
	if err != nil || len(removed) != 0 {
		t.Errorf("SweepOrphans: %v, %v", removed, err)
	}
	if content, err := read(store, pathFor(podinfo, "new")); content != "new" {
		t.Errorf("Open: %q, %v", content, err)
	}
}

func TestUsageCountsABodyOnce(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	publish(t, store, podinfo, "hello")
	publish(t, store, twin, "hello")
	publish(t, store, twin, "hello world")
	stage(t, store, "staged")
	if bytes, count, err := store.Usage(t.Context()); bytes != 5+11+6 || count != 3 || err != nil {
		t.Errorf("Usage: want 22 bytes in 3 files, got %d in %d, %v", bytes, count, err)
	}
}
