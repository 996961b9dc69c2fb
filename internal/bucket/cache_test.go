package bucket_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/bucket"
)

// bring is a fetch that brings objects with that body, whose keys are numbers.
func bring(t *testing.T, cache *bucket.Cache, etag, body string, objects int) {
	t.Helper()
	loan := cache.Borrow(t.Context(), "location")
	for i := range objects {
		if _, err := loan.Put(numbered(i, etag, body), strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := loan.Close(); err != nil {
		t.Fatal(err)
	}
}

func numbered(i int, etag, body string) bucket.Object {
	return bucket.Object{Key: fmt.Sprint(i), ETag: etag, Size: int64(len(body))}
}

// has tells whether the cache has an object of an earlier fetch.
func has(t *testing.T, cache *bucket.Cache, object bucket.Object) bool {
	t.Helper()
	loan := cache.Borrow(t.Context(), "location")
	defer func() { _ = loan.Close() }()
	_, found := loan.Find(object)
	return found
}

// TestManySmallFetchesTakeFewFiles: a storage where one small object changes now and then fills no cache, and must not take one
// file more each time.
func TestManySmallFetchesTakeFewFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("open files are counted in /proc")
	}
	const most = 300
	dir := t.TempDir()
	cache := bucket.NewCache(dir, 1<<30)
	for i := range 2 * most {
		bring(t, cache, fmt.Sprint(i), "a little", 1)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, file := range open {
		if place, err := os.Readlink(file); err == nil && strings.HasPrefix(place, dir) {
			taken++
		}
	}
	if taken > most {
		t.Errorf("%d files are open", taken)
	}
	if !has(t, cache, numbered(0, fmt.Sprint(2*most-1), "a little")) || has(t, cache, numbered(0, "0", "a little")) {
		t.Error("want the last one, and not the first one")
	}
}

// TestObjectsWithoutABodyDoNotPileUp: they take no room in files, but some in memory.
func TestObjectsWithoutABodyDoNotPileUp(t *testing.T) {
	t.Parallel()
	cache := bucket.NewCache(t.TempDir(), 1<<20)
	for _, etag := range []string{"first", "second", "third"} {
		bring(t, cache, etag, "", 100_000)
	}
	if has(t, cache, numbered(0, "first", "")) || !has(t, cache, numbered(0, "third", "")) {
		t.Error("want the last ones, and not the first ones")
	}
}
