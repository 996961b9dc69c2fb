package oci_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/tests/upstream/registry"
)

// TestCopiedLayerIsWhatWasPushed: whoever hashes the layer, other bytes are not stored.
func TestCopiedLayerIsWhatWasPushed(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) storage.Store{
		"SHA256": func(t *testing.T) storage.Store { t.Helper(); return openStore(t, digest.SHA256) },
		"SHA512": func(t *testing.T) storage.Store { t.Helper(); return openStore(t, digest.SHA512) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.obj.Spec.LayerSelector = &sourcev1.OCILayerSelector{Operation: sourcev1.OCILayerCopy}
			pushed, err := registry.Flux(r.layer(), nil)
			if err != nil {
				t.Fatal(err)
			}
			store := open(t)
			pipeline := &source.Pipeline{Store: store, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
			subject := source.Subject{Object: storage.Object{Kind: "ocirepository", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
			run := func() (source.Outcome, error) {
				return pipeline.Run(t.Context(), subject, r.Open, func(context.Context, source.Change) error { return nil })
			}
			r.registry.Always(registry.Corrupt(20).On(registry.Blob))
			_, err = run()
			var staged *source.StageError
			if !errors.Is(err, source.ErrDigest) || !errors.As(err, &staged) || staged.Stage != source.StageFetch {
				t.Fatalf("got %v, want %v of the fetch", err, source.ErrDigest)
			}
			if _, err := store.Record(t.Context(), subject.Object); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("a record is there: %v", err)
			}
			r.registry.Heal()
			outcome, err := run()
			if err != nil {
				t.Fatal(err)
			}
			body, err := store.Open(t.Context(), outcome.Record.Current.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = body.Close() }()
			if got, err := io.ReadAll(body); err != nil || string(got) != string(pushed.Layers[0].Content) {
				t.Errorf("stored %d bytes that are not the layer's %d: %v", len(got), len(pushed.Layers[0].Content), err)
			}
		})
	}
}

func openStore(t *testing.T, algorithm digest.Algorithm) storage.Store {
	t.Helper()
	store, err := local.Open(t.TempDir(), local.Options{Algorithm: algorithm})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
