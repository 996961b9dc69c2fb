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

	"sluice.dev/sluice/internal/memory"
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

// held is a repository's folder while one fetch has it. A nil one keeps nothing.
type held struct {
	cache  *objectCache
	folder *folder
	name   string
	dir    string
	full   bool // no pack can be written there
}

// repository names it; empty where nothing is kept.
func (h *held) repository() string {
	if h == nil {
		return ""
	}
	return h.name
}

// release lets the next one in. When the context has ended, upstream may keep that one waiting as well: all who wait go on
// without the cache.
func (h *held) release(ctx context.Context) {
	if h == nil {
		return
	}
	if ctx.Err() != nil {
		h.cache.mu.Lock()
		close(h.folder.gaveUp)
		h.folder.gaveUp = make(chan struct{})
		h.cache.mu.Unlock()
	}
	<-h.folder.busy
	h.leave()
}

// leave counts the folder's use, and makes room for what it has grown by. Nobody else waits for the disk to do that.
func (h *held) leave() {
	c := h.cache
	c.mu.Lock()
	c.turn++
	h.folder.used = c.turn
	c.unuse(h.name, h.folder)
	aside := c.evict()
	c.mu.Unlock()
	for _, path := range aside {
		_ = os.RemoveAll(path) // The next start removes what is left.
	}
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

// tidy removes all data but the one of the name, and counts the rest.
func (h *held) tidy(name string) {
	keepOnly(h.dir, name) // Nobody else waits for the disk to do that.
	h.cache.mu.Lock()
	defer h.cache.mu.Unlock()
	size := keepOnly(h.dir, name)
	h.cache.size += size - h.folder.size
	h.folder.size = size
}

// parts are those of the repository.
func (h *held) parts() *Parts {
	if h == nil {
		return nil
	}
	return &Parts{cache: h.cache, name: h.name}
}

// load opens what earlier fetches brought; nil without anything that can be used. It is the caller's to close. The error is
// that others have the memory that it takes.
func (h *held) load(ctx context.Context) (*kept, error) {
	if h == nil {
		return nil, nil
	}
	k := &kept{forget: h.forget}
	err := k.open(ctx, h.dir, h.cache.max, h.cache.object)
	if err == nil {
		return k, nil
	}
	k.close(ctx)
	if short := errors.Is(err, errIndexMemory) && !errors.Is(err, memory.ErrBudget); short {
		return nil, err
	}
	h.forget() // Whatever it is, it would be the same the next time.
	return nil, nil
}

// forget makes the next fetch begin anew. Who reads what was kept goes on.
func (h *held) forget() { _ = os.RemoveAll(filepath.Join(h.dir, indexFile)) } // It may be gone already.

// trusted tells whether the server may be told what is there.
func (h *held) trusted() bool { return h != nil && h.folder.doubts < maxDoubts }

// doubt forgets all, and counts: a server that leaves out too much is not told for ever what is there.
func (h *held) doubt() {
	h.forget()
	h.folder.doubts++
}

// room is where a pack is written that may be kept, and whether it may.
func (h *held) room(otherwise string) (dir string, ok bool) {
	if h == nil || h.full || os.MkdirAll(h.dir, 0o700) != nil {
		return otherwise, false
	}
	return h.dir, true
}

// keep adds what a fetch brought to what is kept, or takes its place where that was not built upon. The pack can be read on.
func (h *held) keep(ctx context.Context, p *pack, before *kept, t tip) error {
	if h == nil || before.has(t.commit, t.bare) && len(p.objects) == p.kept {
		return nil
	}
	return h.add(ctx, p, before, before.with(t), remembered{tips: []tip{t}})
}

// keepAll is keep for commits that were fetched together, or made here, the first of which are the newest.
func (h *held) keepAll(ctx context.Context, p *pack, before *kept, fresh []member) error {
	if h == nil || len(p.objects) == p.kept && (len(fresh) == 0 || before.knows(fresh)) {
		return nil
	}
	return h.add(ctx, p, before, before.joined(fresh), (*kept)(nil).joined(fresh))
}

// add keeps what a fetch brought, to remember the commits, or those that it brought alone where there is room for no others.
func (h *held) add(ctx context.Context, p *pack, before *kept, all, alone remembered) error {
	next := &kept{length: p.spool.end(), compact: p.spool.end(), objects: p.objects, byHash: p.byHash, remembered: all}
	var name string
	var err error
	switch tooLong := next.length > h.cache.max/share; {
	case before == nil && tooLong:
		return nil
	case before == nil:
		name, err = h.adopt(p.spool)
	default:
		name, next.compact = before.data.Name(), before.compact
		if !tooLong && !next.wasteful() {
			err = appendTo(name, p.spool)
		} else if next, name, err = h.compact(ctx, p, tooLong, all, alone); err == nil && next == nil {
			h.forget()
			h.tidy("")
			return nil
		}
	}
	if err != nil {
		return err
	}
	if err = h.save(ctx, next, filepath.Base(name)); err != nil && (before == nil || name != before.data.Name()) {
		_ = os.Remove(name) // What is left takes room until the next start.
	}
	return err
}

// compact writes anew what all the commits need or, where that is too much, those alone that a fetch brought. It returns nil
// where that is too much as well.
func (h *held) compact(ctx context.Context, p *pack, tooLong bool, all, alone remembered) (*kept, string, error) {
	room := h.cache.max / share
	most := room
	if tooLong {
		most -= room / 4 // Or the next fetches would have to do it again.
	}
	next, name, err := (&kept{remembered: all}).compacted(ctx, p, h.dir, most)
	if errors.Is(err, errIncomplete) || err == nil && next == nil {
		return (&kept{remembered: alone}).compacted(ctx, p, h.dir, room)
	}
	return next, name, err
}

// adopt makes a pack the data of the folder.
func (h *held) adopt(s *spool) (name string, err error) {
	if s.file != nil && s.named {
		s.named = false
		return s.file.Name(), nil
	}
	file, err := os.CreateTemp(h.dir, dataPattern)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, io.NewSectionReader(s, s.start, s.size))
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name()) // What is left takes room until the next start.
	}
	return file.Name(), err
}

// appendTo adds what a fetch brought to the data, in the place of what a crash left there.
func appendTo(name string, s *spool) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(file, s.start), io.NewSectionReader(s, s.start, s.size))
	return errors.Join(err, file.Close())
}

// save makes the index the folder's, in one step, and removes the data of the one before.
func (h *held) save(ctx context.Context, k *kept, name string) error {
	if err := memory.Draw(ctx, k.encoded()); err != nil {
		return err
	}
	defer memory.Return(ctx, k.encoded())
	aside := filepath.Join(h.dir, asideFile)
	if err := os.WriteFile(aside, k.encode(name), 0o600); err != nil {
		return err
	}
	if err := os.Rename(aside, filepath.Join(h.dir, indexFile)); err != nil {
		return err
	}
	h.tidy(name)
	return nil
}
