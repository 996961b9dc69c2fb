package oci_test

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/tests/upstream/registry"
)

// TestALargeManifestWaitsForMemory: others have what it needs, so that the work begins anew, with nothing in hand.
func TestALargeManifestWaitsForMemory(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	manifest, err := registry.Flux(r.layer(), map[string]string{"a": "1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		more := manifest.Layers[0]
		more.Annotations = map[string]string{"b": strings.Repeat("b", 200<<10)}
		manifest.Layers = append(manifest.Layers, more)
	}
	r.head = r.edited.Push("latest", manifest)
	r.Demand()

	const whole = 16 << 20
	budget := memory.New(whole, "--memory-budget=16777216")
	full, ended := make(chan struct{}), make(chan error, 1)
	release := make(chan struct{})
	go func() {
		// One namespace has three eighths at most, and what is nobody's the rest.
		ended <- budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			err := memory.Draw(ctx, whole-3<<20)
			close(full)
			<-release
			return err
		})
	}()
	<-full
	session, err := r.opener.Open(t.Context(), r.obj)
	if err != nil {
		t.Fatal(err)
	}
	verifier, _ := session.(source.Verifier)
	attempts := 0
	err = budget.Do(t.Context(), fair.Wish{Namespace: "a"}, nil, func(ctx context.Context) error {
		if attempts++; attempts == 2 {
			// All but this is there again; were anything still counted, it would be short once more.
			if err := memory.Draw(ctx, 1<<20); err != nil {
				return err
			}
		}
		selected, err := session.Resolve(ctx)
		if err != nil {
			return err
		}
		if _, err = verifier.Verify(ctx, selected); err != nil {
			if attempts == 1 {
				close(release)
			}
			return err
		}
		content, err := session.Fetch(ctx, selected, "")
		if err != nil {
			return err
		}
		if content.Metadata["a"] != "1" {
			t.Errorf("the manifest's annotations are %v", content.Metadata)
		}
		return content.Close()
	})
	if err != nil || attempts != 2 || <-ended != nil {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}
