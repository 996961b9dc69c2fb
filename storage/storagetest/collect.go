package storagetest

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/storage"
)

func collectKeepsWhatThePolicyKeeps(t *testing.T, b *bench) {
	collect := func(want ...string) {
		t.Helper()
		removed, err := b.Collect(t.Context(), podinfo, "")
		if err != nil {
			t.Fatalf("Collect: %v", err)
		}
		var got []string
		for _, artifact := range removed {
			got = append(got, artifact.Path)
			b.absent(t, artifact.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Collect: -want, +got:\n%s", diff)
		}
	}
	collect() // Nothing is stored.
	b.publish(t, podinfo, "a.tar.gz", "one")
	b.clock.step(1000 * time.Hour) // The age of the artifact does not count.
	collect()
	b.publish(t, podinfo, "b.tar.gz", "two")
	collect()
	b.publish(t, podinfo, "c.tar.gz", "three")
	collect(podinfo.File("a.tar.gz")) // Beyond two records.
	b.clock.step(time.Minute)
	collect()
	b.clock.step(time.Nanosecond)
	collect(podinfo.File("b.tar.gz")) // Older than the TTL.
	b.clock.step(1000 * time.Hour)
	collect() // The current one stays, however old.
	b.holds(t, podinfo.File("c.tar.gz"), "three")
	if record := b.record(t, podinfo); len(record.Superseded) != 0 {
		t.Errorf("The record still names what was collected: %+v", record.Superseded)
	}

	// The path of a collected artifact is free again.
	b.publish(t, podinfo, "a.tar.gz", "four")
	b.holds(t, podinfo.File("a.tar.gz"), "four")
}

// namedStaysForItsTTL lets the process be down, or the API server, between a publication and the status that tells of it.
func namedStaysForItsTTL(t *testing.T, b *bench) {
	old := b.publish(t, podinfo, "a.tar.gz", "one").Current.Path
	current := b.publish(t, podinfo, "b.tar.gz", "two").Current.Path
	collect := func(named string, want int) {
		t.Helper()
		if removed, err := b.Collect(t.Context(), podinfo, named); err != nil || len(removed) != want {
			t.Errorf("Collect while %q is named: want %d gone, got %v, %v", named, want, removed, err)
		}
	}
	b.clock.step(1000 * time.Hour)
	collect(old, 0)
	b.holds(t, old, "one")
	b.clock.step(1000 * time.Hour)
	collect(current, 0)
	b.clock.step(time.Minute)
	collect(current, 0)
	b.holds(t, old, "one")
	b.clock.step(time.Nanosecond)
	collect(current, 1)
	b.absent(t, old)
}

func neverNamedGoes(t *testing.T, b *bench) {
	b.publish(t, podinfo, "0.tar.gz", "zero")
	named := b.publish(t, podinfo, "a.tar.gz", "one").Current.Path
	if _, err := b.Collect(t.Context(), podinfo, named); err != nil {
		t.Fatalf("Collect: %v", err)
	}
	unnamed := ""
	for _, body := range []string{"two", "three", "four"} {
		current := b.publish(t, podinfo, body+".tar.gz", body).Current.Path
		if _, err := b.Collect(t.Context(), podinfo, named); err != nil {
			t.Fatalf("Collect: %v", err)
		}
		b.holds(t, current, body)
		if unnamed != "" {
			b.absent(t, unnamed)
		}
		b.holds(t, named, "one")
		unnamed = current
	}
	// What had been named before is judged once the current one is named.
	b.holds(t, podinfo.File("0.tar.gz"), "zero")
	if _, err := b.Collect(t.Context(), podinfo, unnamed); err != nil {
		t.Fatalf("Collect: %v", err)
	}
	b.absent(t, podinfo.File("0.tar.gz"))
	b.holds(t, named, "one")
}

func clockSetBackCollectsNothing(t *testing.T, b *bench) {
	b.publish(t, podinfo, "a.tar.gz", "one")
	b.publish(t, podinfo, "b.tar.gz", "two")
	b.clock.step(-1000 * time.Hour)
	removed, err := b.Collect(t.Context(), podinfo, "")
	if err != nil || len(removed) != 0 {
		t.Errorf("Collect: want nothing, got %v, %v", removed, err)
	}
	b.holds(t, podinfo.File("a.tar.gz"), "one")
}

func openBodyOutlivesItsArtifact(t *testing.T, b *bench) {
	b.publish(t, podinfo, "a.tar.gz", "hello")
	body, err := b.Open(t.Context(), podinfo.File("a.tar.gz"))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer body.Close()
	if err := b.Delete(t.Context(), podinfo); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	b.absent(t, podinfo.File("a.tar.gz"))
	if content, err := io.ReadAll(body); err != nil || string(content) != "hello" {
		t.Errorf("The open body: want %q, got %q, %v", "hello", content, err)
	}
}

func deleteRemovesTheObjectAlone(t *testing.T, b *bench) {
	neighbours := []storage.Object{
		{Kind: "gitrepository", Namespace: "default", Name: "podinfo-2"},
		{Kind: "gitrepository", Namespace: "default-2", Name: "podinfo"},
		{Kind: "ocirepository", Namespace: "default", Name: "podinfo"},
	}
	for _, object := range append(neighbours, podinfo) {
		b.publish(t, object, "a.tar.gz", "one of "+object.String())
	}
	b.publish(t, podinfo, "b.tar.gz", "two")
	for range 2 { // The second time there is nothing, and that is no error.
		if err := b.Delete(t.Context(), podinfo); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		b.absent(t, podinfo.File("a.tar.gz"))
		b.absent(t, podinfo.File("b.tar.gz"))
		_, err := b.Record(t.Context(), podinfo)
		wantError(t, "Record", err, storage.ErrNotFound)
	}
	for _, object := range neighbours {
		b.holds(t, object.File("a.tar.gz"), "one of "+object.String())
	}
	// A namesake that comes later may use the same paths for other bytes.
	b.publish(t, podinfo, "a.tar.gz", "other")
	b.holds(t, podinfo.File("a.tar.gz"), "other")
}

func objectsAreListedInOrder(t *testing.T, b *bench) {
	want := []storage.Object{
		{Kind: "gitrepository", Namespace: "a-b", Name: "c"},
		{Kind: "gitrepository", Namespace: "a", Name: "c"},
		{Kind: "ocirepository", Namespace: "a", Name: "b"},
		{Kind: "ocirepository", Namespace: "a", Name: "b.c"},
	}
	for _, i := range []int{2, 0, 3, 1} {
		b.publish(t, want[i], "a.tar.gz", fmt.Sprint(i))
	}
	got, err := b.Objects(t.Context())
	if err != nil {
		t.Fatalf("Objects: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Objects: -want, +got:\n%s", diff)
	}
}
