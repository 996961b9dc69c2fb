package bucket

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
)

// maxBatches bounds how many files are open for the cache, and maxBodies how many objects it knows: small ones take little of its
// bytes, and empty ones nothing.
const maxBatches, maxBodies = 256, 250_000

// Cache keeps the bodies of objects in unnamed temporary files, so that what was brought before a fetch failed need not be
// brought again. What was fetched from one location is seen by no other. It may lose anything at any time.
type Cache struct {
	dir string
	max int64

	mu      sync.Mutex
	entries map[entryKey]Body
	batches []*batch // adopted ones, the oldest first
	size    int64
}

type entryKey [sha256.Size]byte

// keyOf names what an object holds, as a location has it.
func keyOf(identity string, object Object) entryKey {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []string{identity, object.Key, object.Content(), fmt.Sprint(object.Size)}))
}

// NewCache returns a Cache of at most so many bytes, in a folder for temporary files; the system's if it is empty.
func NewCache(dir string, maxBytes int64) *Cache {
	return &Cache{dir: dir, max: maxBytes, entries: map[entryKey]Body{}}
}

// batch is a file with the bodies that one fetch brought.
type batch struct {
	file  *os.File
	users int // of whom the cache is one; the last one closes the file
	keys  []entryKey
	size  int64
}

// Body is where a body is.
type Body struct {
	Digest digest.Digest
	Size   int64

	batch *batch
	at    int64
}

// Open reads the body.
func (b Body) Open() io.ReadCloser {
	return io.NopCloser(io.NewSectionReader(b.batch.file, b.at, b.Size))
}

// Loan is what one fetch takes from the cache and brings to it. What it has of bodies can be read until it is closed.
type Loan struct {
	ctx      context.Context //nolint:containedctx // It has the account that the files are drawn from.
	cache    *Cache
	identity string

	mu    sync.Mutex
	used  map[*batch]bool
	own   *batch // nil until something is brought
	drawn int64
	found map[entryKey]Body // brought by this fetch
}

// Borrow begins a fetch from a location.
func (c *Cache) Borrow(ctx context.Context, identity string) *Loan {
	return &Loan{ctx: ctx, cache: c, identity: identity, used: map[*batch]bool{}, found: map[entryKey]Body{}}
}

// Find gives the body of an object that was brought before.
func (l *Loan) Find(object Object) (Body, bool) {
	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()
	found, ok := l.cache.entries[keyOf(l.identity, object)]
	if ok && !l.used[found.batch] {
		l.used[found.batch] = true
		found.batch.users++
	}
	return found, ok
}

// Put keeps a body while it is read. It fails as the body does.
func (l *Loan) Put(object Object, body io.Reader) (Body, error) {
	place, err := l.reserve(object.Size)
	if err != nil {
		return Body{}, err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(place.batch.file, place.at), hash), io.LimitReader(body, object.Size+1))
	if err != nil {
		return Body{}, failure.OfDisk(err)
	}
	if n != object.Size {
		return Body{}, fmt.Errorf("%w: the body has %d bytes, and %d were listed", ErrChanged, n, object.Size)
	}
	place.Digest = digest.NewDigest(digest.SHA256, hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found[keyOf(l.identity, object)] = place
	return place, nil
}

// reserve makes room in the fetch's own file.
func (l *Loan) reserve(size int64) (Body, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := memory.DrawFile(l.ctx, size); err != nil {
		return Body{}, err
	}
	l.drawn += size
	if l.own == nil {
		file, err := unnamed(l.cache.dir)
		if err != nil {
			return Body{}, fmt.Errorf("keep objects: %w", failure.OfDisk(err))
		}
		l.own = &batch{file: file, users: 1}
	}
	place := Body{Size: size, batch: l.own, at: l.own.size}
	l.own.size += size
	return place, nil
}

// unnamed makes a file that has no name any more, so that a crash leaves nothing behind.
func unnamed(dir string) (*os.File, error) {
	if err := os.MkdirAll(cmp.Or(dir, os.TempDir()), 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "bucket-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Close ends the fetch. What it brought stays in the cache, if there is room.
func (l *Loan) Close() error {
	memory.ReturnFile(l.ctx, l.drawn)
	l.drawn = 0
	c := l.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for used := range l.used {
		c.leave(used)
	}
	clear(l.used)
	if l.own == nil {
		return nil
	}
	own := l.own
	l.own = nil
	if own.size > c.max || len(l.found) > maxBodies {
		c.leave(own)
		return nil
	}
	for key, body := range l.found {
		c.entries[key] = body
		own.keys = append(own.keys, key)
	}
	c.batches, c.size = append(c.batches, own), c.size+own.size
	for c.size > c.max || len(c.batches) > maxBatches || len(c.entries) > maxBodies {
		c.forget()
	}
	return nil
}

// forget drops the oldest batch. The lock is held.
func (c *Cache) forget() {
	oldest := c.batches[0]
	c.batches, c.size = c.batches[1:], c.size-oldest.size
	for _, key := range oldest.keys {
		if c.entries[key].batch == oldest {
			delete(c.entries, key)
		}
	}
	c.leave(oldest)
}

// leave closes a file that nobody uses any more. The lock is held.
func (c *Cache) leave(b *batch) {
	if b.users--; b.users == 0 {
		_ = b.file.Close() // It was only for reading.
	}
}
