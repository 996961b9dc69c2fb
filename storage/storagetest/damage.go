package storagetest

import (
	"testing"

	"sluice.dev/sluice/storage"
)

func damagedBodiesAreNotServed(t *testing.T, b *bench) {
	p := b.publish(t, podinfo, "a.tar.gz", "hello").Current.Path
	b.damage(t, p)
	_, _, err := b.read(t.Context(), p)
	wantError(t, "The first Open", err, storage.ErrDamaged)
	for range 3 {
		b.absent(t, p)
		_, err = b.Record(t.Context(), podinfo)
		wantError(t, "Record", err, storage.ErrNotFound)
	}
}

func damagedArtifactCanBeMadeAgain(t *testing.T, b *bench) {
	p := b.publish(t, podinfo, "a.tar.gz", "hello").Current.Path
	b.damage(t, p)
	_, err := b.Record(t.Context(), podinfo)
	wantError(t, "Record", err, storage.ErrNotFound)

	_, err = b.Publish(t.Context(), podinfo, b.stage(t, "other"), recordOf(podinfo, "a.tar.gz"))
	wantError(t, "Other bytes under a path whose body was lost", err, storage.ErrPathTaken)
	b.absent(t, p)

	b.publish(t, podinfo, "a.tar.gz", "hello")
	b.holds(t, p, "hello")
	if record := b.record(t, podinfo); len(record.Superseded) != 0 {
		t.Errorf("The same artifact made again supersedes nothing: %+v", record.Superseded)
	}
}

func damagedSupersededHurtsItselfAlone(t *testing.T, b *bench) {
	old := b.publish(t, podinfo, "a.tar.gz", "one").Current.Path
	current := b.publish(t, podinfo, "b.tar.gz", "two").Current.Path
	b.damage(t, old)
	_, _, err := b.read(t.Context(), old)
	wantError(t, "Open", err, storage.ErrDamaged)
	b.absent(t, old)
	b.holds(t, current, "two")
	b.record(t, podinfo)
	if _, err := b.Collect(t.Context(), podinfo, ""); err != nil {
		t.Errorf("Collect: %v", err)
	}
}
