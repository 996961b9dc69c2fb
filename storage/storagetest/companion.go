package storagetest

import (
	"testing"
	"time"

	"sluice.dev/sluice/storage"
)

// stageTwo stages a body with its companion.
func (b *bench) stageTwo(t *testing.T) storage.Staged {
	t.Helper()
	staged, beside := b.stage(t, "hello"), b.stage(t, "about hello")
	staged.Companion = storage.Companion{Digest: beside.Digest, Size: beside.Size}
	return staged
}

// companionGoesWithItsArtifact: the two come, stay and go together.
func companionGoesWithItsArtifact(t *testing.T, b *bench) {
	staged := b.stageTwo(t)
	first, err := b.Publish(t.Context(), podinfo, staged, recordOf(podinfo, "a.tar.gz"))
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	b.holds(t, first.Current.CompanionPath(), "about hello")
	if got := b.record(t, podinfo).Current.Companion; got != staged.Companion {
		t.Errorf("Record: got companion %+v", got)
	}

	// Another object takes both.
	other := podinfo
	other.Name = "other"
	if err := b.Restage(t.Context(), staged); err != nil {
		t.Fatalf("Restage: %v", err)
	}
	shared, err := b.Publish(t.Context(), other, staged, recordOf(other, "a.tar.gz"))
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	if err := b.Delete(t.Context(), podinfo); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	b.absent(t, first.Current.CompanionPath())
	b.holds(t, shared.Current.CompanionPath(), "about hello")

	// Superseded, it stays for as long as its artifact does.
	b.publish(t, other, "b.tar.gz", "two")
	b.holds(t, shared.Current.CompanionPath(), "about hello")
	b.clock.step(time.Hour)
	for _, named := range []string{"", ""} {
		if _, err := b.Collect(t.Context(), other, named); err != nil {
			t.Fatalf("Collect: %v", err)
		}
		b.clock.step(time.Hour)
	}
	b.absent(t, shared.Current.CompanionPath())
	wantError(t, "Restage of a body that is gone", b.Restage(t.Context(), staged), storage.ErrNotFound)
}

// discardTakesBoth: neither is left behind.
func discardTakesBoth(t *testing.T, b *bench) {
	staged := b.stageTwo(t)
	if err := b.Discard(t.Context(), staged); err != nil {
		t.Fatalf("Discard: %v", err)
	}
	companion := storage.Staged{Digest: staged.Companion.Digest, Size: staged.Companion.Size}
	wantError(t, "Restage of a discarded companion", b.Restage(t.Context(), companion), storage.ErrNotFound)
}

// damagedCompanionIsMadeAgain: an artifact without its companion is not whole.
func damagedCompanionIsMadeAgain(t *testing.T, b *bench) {
	staged := b.stageTwo(t)
	record, err := b.Publish(t.Context(), podinfo, staged, recordOf(podinfo, "a.tar.gz"))
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	b.damage(t, record.Current.CompanionPath())
	_, err = b.Record(t.Context(), podinfo)
	wantError(t, "Record of an artifact whose companion is damaged", err, storage.ErrNotFound)
	b.holds(t, record.Current.Path, "hello")
	if _, err := b.Publish(t.Context(), podinfo, b.stageTwo(t), recordOf(podinfo, "a.tar.gz")); err != nil {
		t.Fatalf("Publish again: %v", err)
	}
	b.holds(t, record.Current.CompanionPath(), "about hello")
}
