package storagetest

import (
	"testing"

	"sluice.dev/sluice/storage"
)

func bodyCanBeStagedAgain(t *testing.T, b *bench) {
	first := b.publish(t, podinfo, "a.tar.gz", "hello").Current
	staged, err := b.Restage(t.Context(), podinfo)
	if err != nil || staged.Digest != first.Digest || staged.Size != first.Size {
		t.Fatalf("Restage: want %s, got %+v, %v", first.Digest, staged, err)
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
	if staged, err = b.Restage(t.Context(), podinfo); err != nil {
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
	if staged, err = b.Restage(t.Context(), podinfo); err != nil {
		t.Fatalf("Restage: %v", err)
	}
	if err := b.Discard(t.Context(), staged); err != nil {
		t.Fatalf("Discard: %v", err)
	}
	b.holds(t, podinfo.File("b.tar.gz"), "hello")
}

func nothingCannotBeStagedAgain(t *testing.T, b *bench) {
	_, err := b.Restage(t.Context(), podinfo)
	wantError(t, "Restage without an artifact", err, storage.ErrNotFound)
	record := b.publish(t, podinfo, "a.tar.gz", "hello")
	b.damage(t, record.Current.Path)
	_, err = b.Restage(t.Context(), podinfo)
	wantError(t, "Restage of a damaged body", err, storage.ErrNotFound)
}
