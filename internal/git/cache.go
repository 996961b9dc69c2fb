package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// The files of a repository in the cache. What else is there was left by a killed process, or is some Shelf's.
const (
	indexFile   = "index"
	asideFile   = "index.new"
	dataPattern = "data-*"
	lockFile    = "lock"
)

// share is which part of the cache one repository may have.
const share = 4

// maxDoubts is how often a server may leave out too much before it is not told any more what is there.
const maxDoubts = 3

// objectCache keeps objects on disk, apart for each repository and identity: nothing that was fetched with one credential is seen
// by another. It may be lost at any time, which costs a fetch. A nil one keeps nothing.
type objectCache struct {
	dir    string
	max    int64
	object int64 // the most bytes that one may have
	report func(error)

	mu      sync.Mutex
	lock    *os.File // nil until the folder is this process's
	folders map[string]*folder
	size    int64 // of all folders
	turn    int64 // counts uses
}

// folder is what is known of a repository's folder.
type folder struct {
	busy   chan struct{} // holds one who fetches
	gaveUp chan struct{} // is closed when the time of that one is over, and made anew
	used   int64         // the turn of its last use
	// users are those who fetch or wait for that.
	users int
	size  int64
	// doubts counts how often not all was there when the server had been told what is.
	doubts int
}

func newCache(options Options) *objectCache {
	if options.CacheDir == "" || options.MaxCacheBytes <= 0 {
		return nil
	}
	return &objectCache{dir: options.CacheDir, max: options.MaxCacheBytes, object: options.MaxObjectBytes, report: options.CacheFailed}
}

// begin makes the folder this process's, once, and looks what is there.
func (c *objectCache) begin() error {
	if c.lock != nil {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(c.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another process uses %s: %w", c.dir, err), lock.Close())
	}
	c.lock, c.folders = lock, map[string]*folder{}
	found, err := os.ReadDir(c.dir)
	for _, entry := range found {
		path := filepath.Join(c.dir, entry.Name())
		switch info, err := os.Stat(filepath.Join(path, indexFile)); {
		case !isFolder(entry.Name()): // It is the lock, or nothing of the cache's.
		case err != nil:
			_ = os.RemoveAll(path) // It is tried again by the next process.
		default:
			f := c.folder(entry.Name())
			f.size, f.used = sweep(path), info.ModTime().UnixNano()
			c.size, c.turn = c.size+f.size, max(c.turn, f.used)
		}
	}
	return err
}

// isFolder tells whether a name is that of a repository's folder; see Remote.Key.
func isFolder(name string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == sha256.Size
}

// sweep removes what no index names from a folder, and returns the size of the rest.
func sweep(dir string) (size int64) {
	name := ""
	if index, err := os.Open(filepath.Join(dir, indexFile)); err == nil {
		head := make([]byte, keptHeader)
		n, _ := io.ReadFull(index, head) // What cannot be read names nothing.
		name = dataName(head[:n])
		_ = index.Close() // It was only read.
	}
	return keepOnly(dir, name)
}

// keepOnly removes all data but the one of the name, and returns the size of what is left in the folder.
func keepOnly(dir, name string) (size int64) {
	found, _ := os.ReadDir(dir) // What is not found takes room until the next start.
	for _, entry := range found {
		if ok, _ := filepath.Match(dataPattern, entry.Name()); ok && entry.Name() != name {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
		} else if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// folder returns what is known of a folder. The lock is held.
func (c *objectCache) folder(name string) *folder {
	f := c.folders[name]
	if f == nil {
		f = &folder{busy: make(chan struct{}, 1), gaveUp: make(chan struct{})}
		c.folders[name] = f
	}
	return f
}

// hold waits until nobody else fetches the repository with the identity. Where the cache is of no use, nothing is kept.
func (c *objectCache) hold(ctx context.Context, name string) (*held, error) {
	h, gaveUp := c.enter(name)
	if h == nil {
		return nil, nil
	}
	select {
	case h.folder.busy <- struct{}{}:
		return h, nil
	case <-gaveUp:
		// A line of those who wait for upstream in vain would use up the time of whoever comes last.
		h.leave()
		return nil, nil
	case <-ctx.Done():
		h.leave()
		return nil, context.Cause(ctx)
	}
}

// holdFree is hold for who does not wait: nil where somebody fetches.
func (c *objectCache) holdFree(name string) *held {
	h, _ := c.enter(name)
	if h == nil {
		return nil
	}
	select {
	case h.folder.busy <- struct{}{}:
		return h
	default:
		h.leave()
		return nil
	}
}

// enter counts another user of the folder, and tells what is closed when the one who fetches gives up; nil where the cache is of
// no use.
func (c *objectCache) enter(name string) (h *held, gaveUp <-chan struct{}) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	if err := c.begin(); err != nil {
		c.mu.Unlock()
		c.report(fmt.Errorf("nothing is kept: %w", err))
		return nil, nil
	}
	defer c.mu.Unlock()
	f := c.folder(name)
	f.users++
	return &held{cache: c, folder: f, name: name, dir: filepath.Join(c.dir, name)}, f.gaveUp
}

// unuse counts one user less, and forgets a folder in which there is nothing: anybody may make up URLs. The lock is held.
func (c *objectCache) unuse(name string, f *folder) {
	if f.users--; f.users == 0 && f.size == 0 {
		delete(c.folders, name)
	}
}

// evict forgets folders until the others fit, and returns them under names that nobody asks for. The lock is held.
func (c *objectCache) evict() (aside []string) {
	for c.size > c.max {
		name, ok := c.oldest()
		if !ok {
			break
		}
		c.size -= c.folders[name].size
		delete(c.folders, name)
		c.turn++
		path, gone := filepath.Join(c.dir, name), filepath.Join(c.dir, fmt.Sprintf("%064x", c.turn))
		_ = os.Remove(filepath.Join(path, indexFile)) // Without it the next start removes what is left.
		if os.Rename(path, gone) == nil {
			aside = append(aside, gone)
		}
	}
	return aside
}

// oldest is the folder that was not used for longest, of those that nobody uses.
func (c *objectCache) oldest() (oldest string, ok bool) {
	for name, f := range c.folders {
		if f.users == 0 && (!ok || f.used < c.folders[oldest].used) {
			oldest, ok = name, true
		}
	}
	return oldest, ok
}
