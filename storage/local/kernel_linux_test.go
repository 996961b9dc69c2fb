package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTheCacheIsDropped has nothing to look at where the folder lies in memory.
func TestTheCacheIsDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir, Options{})
	blob := blobPath(publish(t, store, podinfo, strings.Repeat("x", 1<<20)).Current.Digest)
	file, err := os.Open(filepath.Join(dir, blob))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !cached(t, file) {
		t.Log("what was just written is not cached")
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &system); err != nil {
		t.Fatal(err)
	}
	if system.Type == unix.TMPFS_MAGIC || system.Type == unix.RAMFS_MAGIC {
		return
	}
	// Linux keeps pages that another processor is busy with.
	for range 1000 {
		if dropCache(file); !cached(t, file) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("The file is still cached")
}

// cached tells whether the file's first bytes can be had without the disk.
func cached(t *testing.T, file *os.File) bool {
	t.Helper()
	n, err := unix.Preadv2(int(file.Fd()), [][]byte{make([]byte, 4096)}, 0, unix.RWF_NOWAIT)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return n > 0
}
