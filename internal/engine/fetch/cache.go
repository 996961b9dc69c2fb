package fetch

import (
	"container/list"
	"io/fs"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/fair"
)

// Cache holds unpacked artifacts by digest. It is safe for concurrent use.
type Cache struct {
	clients Clients
	options Options
	slots   *fair.Pool // for the downloads that run

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry // by digest
	idle    *list.List        // of *entry that nobody leases, most recently used first
	bytes   int64             // weight of all entries
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
	place  *list.Element // in idle, when leases is zero
}

// New returns an empty cache.
func New(clients Clients, options Options) *Cache {
	options = options.withDefaults()
	absent, _ := simplelru.NewLRU[Artifact, absence](maxAbsences, nil) // Only a size of zero is an error.
	return &Cache{
		clients: clients,
		options: options,
		slots:   fair.New(int64(options.Parallel), 0),
		entries: map[string]*entry{},
		idle:    list.New(),
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
	if there.place != nil && leases > 0 {
		c.idle.Remove(there.place)
		there.place = nil
	}
	there.leases += leases
	if there.leases == 0 && there.place == nil {
		c.rest(there)
	}
	return there
}

func (c *Cache) use(e *entry) {
	if e.place != nil {
		c.idle.Remove(e.place)
		e.place = nil
	}
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
	e.place = c.idle.PushFront(e)
	for c.idle.Len() > 0 && (c.bytes > c.options.MaxBytes || len(c.entries) > c.options.MaxCount) {
		oldest, _ := c.idle.Back().Value.(*entry) // The list holds nothing else.
		c.forget(oldest)
	}
}

func (c *Cache) forget(e *entry) {
	if e.place != nil {
		c.idle.Remove(e.place)
		e.place = nil
	}
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
	for c.idle.Len() > 0 {
		oldest, _ := c.idle.Back().Value.(*entry) // The list holds nothing else.
		c.forget(oldest)
	}
}
