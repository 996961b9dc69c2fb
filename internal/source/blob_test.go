package source_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

// parcel is a source of one blob that says what it should hash to.
type parcel struct {
	session
	body   string
	digest digest.Digest
}

func (p parcel) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	return source.Content{Blob: strings.NewReader(p.body), Digest: p.digest}, nil
}

func TestBlobIsStoredOnlyWithItsDigest(t *testing.T) {
	t.Parallel()
	files := func(algorithm digest.Algorithm) func(*testing.T, string) storage.Store {
		return func(t *testing.T, dir string) storage.Store {
			t.Helper()
			store, err := local.Open(dir, local.Options{Algorithm: algorithm})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			return store
		}
	}
	for name, tc := range map[string]struct {
		reason string
		store  func(*testing.T, string) storage.Store
		digest func(string) digest.Digest
	}{
		"SameAlgorithm": {"The store's own hash is the proof.", files(digest.SHA256), digest.FromString},
		"OtherInStore":  {"The store hashes with another algorithm.", files(digest.SHA512), digest.FromString},
		"OtherInDigest": {"The digest is of another algorithm.", files(digest.SHA256), digest.SHA512.FromString},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pipeline := newPipeline(t)
			pipeline.Store = tc.store(t, dir)
			subject := source.Subject{Object: storage.Object{Kind: "parcel", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
			run := func(p parcel) (source.Outcome, error) {
				return pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) { return p, nil },
					func(context.Context, source.Change) error { return nil })
			}
			s := session{&shelf{}}
			_, err := run(parcel{s, "forged", tc.digest("genuine")})
			var staged *source.StageError
			if !errors.Is(err, source.ErrDigest) || !errors.As(err, &staged) || staged.Stage != source.StageFetch {
				t.Fatalf("%s: got %v, want %v of the fetch", tc.reason, err, source.ErrDigest)
			}
			if _, err := pipeline.Store.Record(t.Context(), subject.Object); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s: a record is there: %v", tc.reason, err)
			}
			if left := bodies(t, dir); len(left) > 0 {
				t.Errorf("%s: left behind: %q", tc.reason, left)
			}
			outcome, err := run(parcel{s, "genuine", tc.digest("genuine")})
			if err != nil || outcome.Record.Current.Size != int64(len("genuine")) {
				t.Errorf("%s: got %+v, %v", tc.reason, outcome.Record.Current, err)
			}
		})
	}
}

func TestBlobOfNoDigestIsRefused(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	for _, bad := range []digest.Digest{"md5:" + digest.Digest(strings.Repeat("0", 32)), "sha256:0", "nothing"} {
		subject := source.Subject{Object: storage.Object{Kind: "parcel", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
		_, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) {
			return parcel{session{&shelf{}}, "body", bad}, nil
		}, func(context.Context, source.Change) error { return nil })
		var staged *source.StageError
		if !errors.As(err, &staged) || staged.Stage != source.StageFetch {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// bodies are the files that a store keeps under a folder, without its lock.
func bodies(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			found = append(found, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(path string) bool { return filepath.Base(path) == "lock" })
}
