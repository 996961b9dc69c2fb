package storagetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

func pathKeepsItsBytes(t *testing.T, b *bench) {
	b.publish(t, podinfo, "a.tar.gz", "hello")
	other := b.stage(t, "other")
	_, err := b.Publish(t.Context(), podinfo, other, recordOf(podinfo, "a.tar.gz"))
	wantError(t, "Other bytes under the current path", err, storage.ErrPathTaken)
	b.holds(t, podinfo.File("a.tar.gz"), "hello")

	// The refused body is still staged, and fits under another path.
	if _, err := b.Publish(t.Context(), podinfo, other, recordOf(podinfo, "b.tar.gz")); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	_, err = b.Publish(t.Context(), podinfo, b.stage(t, "third"), recordOf(podinfo, "a.tar.gz"))
	wantError(t, "Other bytes under a superseded path", err, storage.ErrPathTaken)
	b.holds(t, podinfo.File("a.tar.gz"), "hello")
	b.holds(t, podinfo.File("b.tar.gz"), "other")
}

func publishingIsIdempotent(t *testing.T, b *bench) {
	staged := b.stage(t, "hello")
	first, err := b.Publish(t.Context(), podinfo, staged, recordOf(podinfo, "a.tar.gz"))
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	b.clock.step(time.Hour)
	for _, body := range []storage.Staged{staged, b.stage(t, "hello")} {
		again, err := b.Publish(t.Context(), podinfo, body, recordOf(podinfo, "a.tar.gz"))
		if err != nil {
			t.Fatalf("Publish again: %v", err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("Publishing the same again changed the record: -want, +got:\n%s", diff)
		}
	}
	b.holds(t, podinfo.File("a.tar.gz"), "hello")
}

func nextArtifactSupersedes(t *testing.T, b *bench) {
	b.publish(t, podinfo, "a.tar.gz", "one")
	b.clock.step(time.Second)
	b.publish(t, podinfo, "b.tar.gz", "two")
	b.clock.step(time.Second)
	got := b.publish(t, podinfo, "c.tar.gz", "three")

	artifact := func(file, body string, after time.Duration) storage.Artifact {
		return storage.Artifact{
			Path: podinfo.File(file), Digest: digest.FromString(body), Size: int64(len(body)), StoredAt: start.Add(after),
		}
	}
	want := storage.Record{
		UID:     "uid",
		Current: artifact("c.tar.gz", "three", 2*time.Second),
		Superseded: []storage.Superseded{
			{Artifact: artifact("b.tar.gz", "two", time.Second)},
			{Artifact: artifact("a.tar.gz", "one", 0)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Publish: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, b.record(t, podinfo)); diff != "" {
		t.Errorf("Record: -want, +got:\n%s", diff)
	}
	b.holds(t, podinfo.File("a.tar.gz"), "one")
	b.holds(t, podinfo.File("b.tar.gz"), "two")
	b.holds(t, podinfo.File("c.tar.gz"), "three")
}

func earlierArtifactCanComeBack(t *testing.T, b *bench) {
	b.publish(t, podinfo, "a.tar.gz", "one")
	b.publish(t, podinfo, "b.tar.gz", "two")
	record := b.publish(t, podinfo, "a.tar.gz", "one")
	if record.Current.Path != podinfo.File("a.tar.gz") || len(record.Superseded) != 1 ||
		record.Superseded[0].Path != podinfo.File("b.tar.gz") {
		t.Errorf("After going back: got %+v", record)
	}
	b.outlive(t)
	b.holds(t, podinfo.File("a.tar.gz"), "one")
	b.absent(t, podinfo.File("b.tar.gz"))
}

func sameBytesServeManyPaths(t *testing.T, b *bench) {
	twin := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "twin"}
	b.publish(t, podinfo, "a.tar.gz", "same")
	b.publish(t, podinfo, "b.tar.gz", "same")
	b.publish(t, twin, "a.tar.gz", "same")
	b.outlive(t)
	b.absent(t, podinfo.File("a.tar.gz"))
	b.holds(t, podinfo.File("b.tar.gz"), "same")
	if err := b.Delete(t.Context(), podinfo); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	b.holds(t, twin.File("a.tar.gz"), "same")
}

func recordIsKeptWhole(t *testing.T, b *bench) {
	want := wholeRecord()
	got, err := b.Publish(t.Context(), podinfo, b.stage(t, "hello"), wholeRecord())
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
	want.Current.Digest, want.Current.Size = digest.FromString("hello"), 5
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Publish: -want, +got:\n%s", diff)
	}
	got.Title, got.Current.Metadata["x"] = "changed", "by the caller"
	if diff := cmp.Diff(want, b.record(t, podinfo)); diff != "" {
		t.Errorf("Record: -want, +got:\n%s", diff)
	}
	next := b.publish(t, podinfo, "b.tar.gz", "next")
	if next.UID != "uid" || next.Superseded[0].Revision != "main@sha1:0123" {
		t.Errorf("The next record has its own UID and the earlier artifact's revision: got %+v", next)
	}
}

func wholeRecord() storage.Record {
	return storage.Record{
		UID:            "5e1f",
		ConfigChecksum: "sha256:01",
		BaseChecksum:   "sha256:02",
		Title:          "Fix \"everything\"\n\u2028 & <more>",
		Current: storage.Artifact{
			Path:     podinfo.File("a.tar.gz"),
			Revision: "main@sha1:0123",
			StoredAt: start.Add(-time.Hour),
			Metadata: map[string]string{"org.opencontainers.image.title": "podinfo"},
		},
	}
}
