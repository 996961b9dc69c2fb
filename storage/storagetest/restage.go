package storagetest

import (
	"testing"

	"sluice.dev/sluice/storage"
)

func bodyCanBeStagedAgain(t *testing.T, b *bench) {
	first := b.publish(t, podinfo, "a.tar.gz", "hello").Current
	staged := storage.Staged{Digest: first.Digest, Size: first.Size}
	if err := b.Restage(t.Context(), staged); err != nil {
		t.Fatalf("Restage: %v", err)
	}
	next := recordOf(podinfo, "b.tar.gz")
	next.ContentKey, next.VerifiedBy = "layer", "key"
	if _, err := b.Publish(t.Context(), podinfo, staged, next); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	b.holds(t, podinfo.File("a.tar.gz"), "hello")
	b.holds(t, podinfo.File("b.tar.gz"), "hello")
	if got := b.record(t, podinfo); got.ContentKey != "layer" || got.VerifiedBy != "key" || len(got.Superseded) != 1 {
		t.Errorf("Record: got %+v", got)
	}

	// The same path again: only the record changes.
	if err := b.Restage(t.Context(), staged); err != nil {
		t.Fatalf("Restage: %v", err)
	}
	next.VerifiedBy = "another key"
	if _, err := b.Publish(t.Context(), podinfo, staged, next); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	if got := b.record(t, podinfo); got.VerifiedBy != "another key" || len(got.Superseded) != 1 {
		t.Errorf("Record: got %+v", got)
	}

	// Discarding takes the claim back, and nothing else.
	if err := b.Restage(t.Context(), staged); err != nil {
		t.Fatalf("Restage: %v", err)
	}
	if err := b.Discard(t.Context(), staged); err != nil {
		t.Fatalf("Discard: %v", err)
	}
	b.holds(t, podinfo.File("b.tar.gz"), "hello")
}

func nothingCannotBeStagedAgain(t *testing.T, b *bench) {
	current := b.publish(t, podinfo, "a.tar.gz", "hello").Current
	staged := storage.Staged{Digest: current.Digest, Size: current.Size}
	b.damage(t, current.Path)
	wantError(t, "Restage of a damaged body", b.Restage(t.Context(), staged), storage.ErrDamaged)
	wantError(t, "Restage of what is gone", b.Restage(t.Context(), staged), storage.ErrNotFound)
}
