package fetch

import (
	"context"
	"io/fs"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/transport"
)

// Cache holds unpacked artifacts by digest. It is safe for concurrent use.
type Cache struct {
	clients *transport.Factory
	options Options
	slots   *fair.Pool      // for the downloads that run
	open    context.Context //nolint:containedctx // It ends with the cache, and all downloads with it.
	close   context.CancelFunc

	mu      sync.Mutex
	entries map[string]*entry              // by digest
	idle    *simplelru.LRU[string, *entry] // those of them that nobody leases
	bytes   int64                          // weight of all entries
	flights map[Artifact]*flight
	absent  *simplelru.LRU[Artifact, absence]
}

// entry is an artifact whose digest was verified.
type entry struct {
	digest string
	tree   *archive.Tree
	weight int64
	leases int
}

// New returns an empty cache.
func New(clients *transport.Factory, options Options) *Cache {
	options = options.withDefaults()
	absent, _ := simplelru.NewLRU[Artifact, absence](maxAbsences, nil) // Only a size of zero is an error.
	idle, _ := simplelru.NewLRU[string, *entry](math.MaxInt, nil)
	open, end := context.WithCancel(context.Background())
	return &Cache{
		clients: clients, options: options, slots: fair.New(int64(options.Parallel), 0), open: open, close: end,
		entries: map[string]*entry{}, idle: idle, flights: map[Artifact]*flight{}, absent: absent,
	}
}

// Lease is an artifact in use: it is not given up before Release.
type Lease struct {
	// FS is the unpacked artifact, read-only and without links.
	FS fs.FS

	release func()
}

// Release ends the lease; nothing of FS may be read afterwards. More than one call does no harm.
func (l *Lease) Release() { l.release() }

// keep puts an entry in the cache, leased by so many, and gives the one that is there.
func (c *Cache) keep(got *entry, leases int) *entry {
	there, ok := c.entries[got.digest]
	if ok {
		_ = got.tree.Close() // Another URL brought the same bytes first.
	} else {
		there = got
		c.entries[got.digest] = got
		c.bytes += got.weight
	}
	c.use(there, leases)
	return there
}

// use counts so many leases more, or fewer, of an entry. One that nobody uses any more rests.
func (c *Cache) use(e *entry, more int) {
	c.idle.Remove(e.digest)
	if e.leases += more; e.leases == 0 {
		c.idle.Add(e.digest, e)
		c.trim()
	}
}

// trim gives up what was not used for the longest time.
func (c *Cache) trim() {
	for c.idle.Len() > 0 && (c.open.Err() != nil || c.bytes > c.options.MaxBytes || len(c.entries) > c.options.MaxCount) {
		_, oldest, _ := c.idle.RemoveOldest()
		delete(c.entries, oldest.digest)
		c.bytes -= oldest.weight
		_ = oldest.tree.Close() // An unnamed file that is read no more.
	}
}

// Close ends all downloads and gives up what nobody uses; what is in use goes with its last lease.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	c.trim()
}
