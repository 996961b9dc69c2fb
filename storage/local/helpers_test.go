package local

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

var (
	noon    = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	podinfo = storage.Object{Kind: "gitrepository", Namespace: "default", Name: "podinfo"}
	twin    = storage.Object{Kind: "gitrepository", Namespace: "default", Name: "twin"}
)

// clock stands still until it is set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

func stage(t *testing.T, store *Store, body string) storage.Staged {
	t.Helper()
	staged, err := store.Stage(t.Context(), 0, writing(body))
	if err != nil {
		t.Fatalf("Stage: %v", err)
	}
	return staged
}

func writing(body string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	}
}

// publish makes the body current under a file name that tells its digest.
func publish(t *testing.T, store *Store, object storage.Object, body string) storage.Record {
	t.Helper()
	record, err := store.Publish(t.Context(), object, stage(t, store, body), recordFor(object, body))
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	return record
}

func recordFor(object storage.Object, body string) storage.Record {
	return storage.Record{UID: "uid", Current: storage.Artifact{Path: pathFor(object, body)}}
}

func pathFor(object storage.Object, body string) string {
	return object.File(digest.FromString(body).Encoded() + ".tar.gz")
}

func read(store *Store, path string) (string, error) {
	body, err := store.Open(context.Background(), path)
	if err != nil {
		return "", err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	return string(content), err
}

// files lists the regular files below dir, relative to it.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		found = append(found, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatalf("Walk: %v", err)
	}
	return found
}

// blobs lists the stored bodies, by the files themselves.
func blobs(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, name := range files(t, dir) {
		if strings.HasPrefix(name, blobsDir+"/") {
			found = append(found, name)
		}
	}
	return found
}

// wantTidy asserts that the folder holds nothing but whole published bodies, their records and the lock.
func wantTidy(t *testing.T, store *Store, dir string) {
	t.Helper()
	wanted := map[string]bool{lockFile: true}
	objects, err := store.Objects(t.Context())
	if err != nil {
		t.Fatalf("Objects: %v", err)
	}
	for _, object := range objects {
		record, err := store.Record(t.Context(), object)
		if err != nil {
			t.Errorf("Record of %s: %v", object, err)
			continue
		}
		wanted[recordPath(object)] = true
		for _, artifact := range artifacts(record) {
			wanted[blobPath(artifact.Digest)] = true
			content, err := read(store, artifact.Path)
			if err != nil || artifact.Digest.Algorithm().FromString(content) != artifact.Digest {
				t.Errorf("%s does not hold %s: %v", artifact.Path, artifact.Digest, err)
			}
		}
	}
	for _, name := range files(t, dir) {
		if !wanted[name] {
			t.Errorf("%s was left behind", name)
		}
		delete(wanted, name)
	}
	for name := range wanted {
		t.Errorf("%s is missing", name)
	}
	folders, err := filepath.Glob(filepath.Join(dir, recordsDir, "*/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != len(objects) {
		t.Errorf("%d objects have %d folders", len(objects), len(folders))
	}
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// watch records what OnDamage is told.
type watch struct {
	mu   sync.Mutex
	told []string
}

func (w *watch) onDamage(object storage.Object, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf("%s: %v", object, err))
}

func (w *watch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.told)
}
