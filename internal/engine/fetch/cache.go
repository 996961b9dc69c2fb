package fetch

import (
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
	slots   *fair.Pool // for the downloads that run

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry              // by digest
	idle    *simplelru.LRU[string, *entry] // those of them that nobody leases
	bytes   int64                          // weight of all entries
	flights map[Artifact]*flight
	absent  *simplelru.LRU[Artifact, absence]
}

// entry is an artifact whose digest was verified, or the verdict that it cannot be unpacked.
type entry struct {
	digest string
	tree   *archive.Tree
	err    error // instead of the tree
	weight int64
	leases int
}

// New returns an empty cache.
func New(clients *transport.Factory, options Options) *Cache {
	options = options.withDefaults()
	absent, _ := simplelru.NewLRU[Artifact, absence](maxAbsences, nil) // Only a size of zero is an error.
	idle, _ := simplelru.NewLRU[string, *entry](math.MaxInt, nil)
	return &Cache{
		clients: clients,
		options: options,
		slots:   fair.New(int64(options.Parallel), 0),
		entries: map[string]*entry{},
		idle:    idle,
		flights: map[Artifact]*flight{},
		absent:  absent,
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
	switch {
	case ok:
		// Another URL brought the same bytes first.
		got.drop()
	case c.closed:
		there = got
	default:
		there = got
		c.entries[got.digest] = got
		c.bytes += got.weight
	}
	if there.err != nil {
		leases = 0
	}
	if there.leases += leases; there.leases == 0 {
		c.rest(there)
	} else {
		c.idle.Remove(there.digest)
	}
	return there
}

func (c *Cache) use(e *entry) {
	c.idle.Remove(e.digest)
	e.leases++
}

func (c *Cache) unuse(e *entry) {
	if e.leases--; e.leases == 0 {
		c.rest(e)
	}
}

// rest keeps an entry that nobody uses, and gives up those that were not used for the longest time.
func (c *Cache) rest(e *entry) {
	if c.closed {
		c.forget(e)
		return
	}
	c.idle.Add(e.digest, e)
	for c.idle.Len() > 0 && (c.bytes > c.options.MaxBytes || len(c.entries) > c.options.MaxCount) {
		_, oldest, _ := c.idle.GetOldest()
		c.forget(oldest)
	}
}

func (c *Cache) forget(e *entry) {
	c.idle.Remove(e.digest)
	if c.entries[e.digest] == e {
		delete(c.entries, e.digest)
		c.bytes -= e.weight
	}
	e.drop()
}

func (e *entry) drop() {
	if e.tree != nil {
		_ = e.tree.Close() // An unnamed file that is read no more.
	}
}

// Close ends all downloads and gives up what nobody uses; what is in use goes with its last lease.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, f := range c.flights {
		f.cancel()
	}
	for _, resting := range c.idle.Values() {
		c.forget(resting)
	}
}
