package local

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/storage"
)

// TestAnUnchangedRecordIsReadOnce: each poll asks for it, whether or not there is anything new.
func TestAnUnchangedRecordIsReadOnce(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	want := publish(t, store, podinfo, "hello")
	opened := map[string]int{}
	store.disk.opening = func(name string) error {
		opened[name]++
		return nil
	}
	for range 5 {
		got, err := store.Record(t.Context(), podinfo)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v, record (-want +got):\n%s", err, diff)
		}
		if _, err := store.Collect(t.Context(), podinfo, got.Current.Path); err != nil {
			t.Fatal(err)
		}
	}
	if opened[recordPath(podinfo)] != 1 {
		t.Errorf("opened %v", opened)
	}
}

// TestEachRecordHasATimeOfItsOwn: of two that follow each other at once, the later may have the earlier one's number and
// size, and whoever only reads would take it for the same.
func TestEachRecordHasATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	record := publish(t, store, podinfo, "hello")
	object := func(i int) storage.Object {
		return storage.Object{Kind: "gitrepository", Namespace: "default", Name: strconv.Itoa(i)}
	}
	const all = 64
	var writers sync.WaitGroup
	for i := range all {
		writers.Go(func() {
			if err := store.save(object(i), record); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	times := map[int64]bool{}
	for i := range all {
		id, err := store.disk.identify(recordPath(object(i)))
		if err != nil {
			t.Fatal(err)
		}
		times[id.mtime] = true
	}
	if len(times) != all {
		t.Errorf("%d records have %d times", all, len(times))
	}
}

// TestWhoChangesARecordChangesNobodyElses: what is given out is a copy.
func TestWhoChangesARecordChangesNobodyElses(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	full := storage.Record{
		Current:    storage.Artifact{Metadata: map[string]string{"a": "b"}},
		Superseded: []storage.Superseded{{Artifact: storage.Artifact{Metadata: map[string]string{"c": "d"}}}},
	}
	published := publish(t, store, podinfo, "hello")
	full.UID, full.Current.Path, full.Current.Digest = published.UID, published.Current.Path, published.Current.Digest
	full.Superseded[0].Path, full.Superseded[0].Digest = podinfo.File("old"), published.Current.Digest
	unlock := store.objects.lock(podinfo)
	err := store.save(podinfo, full)
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := store.Record(t.Context(), podinfo)
		if diff := cmp.Diff(full, got); diff != "" || err != nil {
			t.Fatalf("%v, record (-want +got):\n%s", err, diff)
		}
		maps.DeleteFunc(got.Current.Metadata, func(string, string) bool { return true })
		got.Superseded[0].Metadata["c"] = "changed"
		got.Superseded = slices.Delete(got.Superseded, 0, 1)
	}
}

// TestARemovedObjectIsForgotten: objects of ever new names come and go, one for each pull request, say.
func TestARemovedObjectIsForgotten(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	path := publish(t, store, podinfo, "hello").Current.Path
	if _, err := read(store, path); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), podinfo); err != nil {
		t.Fatal(err)
	}
	if n := store.meanings.len(); n != 0 {
		t.Errorf("The records of %d objects are in memory", n)
	}
}

// TestARequestIsNotKept: a path is part of a request's first line, which is as long as its client likes.
func TestARequestIsNotKept(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir(), Options{})
	line := []byte(publish(t, store, podinfo, "hello").Current.Path)
	if _, err := read(store, unsafe.String(&line[0], len(line))); err != nil {
		t.Fatal(err)
	}
	kept := weak.Make(&line[0])
	runtime.GC()
	if kept.Value() != nil {
		t.Error("The first line of a request stays in memory for as long as what its path means")
	}
	runtime.KeepAlive(store)
}
