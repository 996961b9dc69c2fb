package fetch

import (
	"container/list"
	"context"
	"errors"
	"io/fs"
	"sync"

	"sluice.dev/sluice/internal/archive"
)

// Cache holds unpacked artifacts by digest. It is safe for concurrent use.
type Cache struct {
	clients Clients
	options Options
	slots   chan struct{} // one token for each download that may run

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry // by digest
	idle    *list.List        // of *entry that nobody leases, most recently used first
	bytes   int64             // weight of all entries
	flights map[Artifact]*flight
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
	return &Cache{
		clients: clients,
		options: options,
		slots:   make(chan struct{}, options.Parallel),
		entries: map[string]*entry{},
		idle:    list.New(),
		flights: map[Artifact]*flight{},
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

// Acquire gives the artifact, from the cache if it is there. However many ask for the same artifact at once, it is
// downloaded once; who stops asking does not disturb the others. A server that cannot be reached, lacks the artifact
// (404, 410) or is overloaded (408, 425, 429, 5xx) is asked again, with growing delays, until the context's deadline or
// Options.Patience has passed. Content with another digest is asked for once more, since the source may just have
// replaced it.
//
// The error is a retried failure that names the URL and wraps ErrUnavailable, ErrStatus, ErrDigest, ErrTooLarge,
// ErrArtifact or an error of package archive; ErrClosed; or that of a context that was cancelled. That a digest cannot
// be unpacked is remembered like an artifact.
//
// Whoever names the digest of an artifact that is in the cache gets it, whatever the URL says.
func (c *Cache) Acquire(ctx context.Context, a Artifact) (*Lease, error) {
	want, err := parseDigest(a.Digest)
	if err != nil {
		return nil, explain(a, err)
	}
	revision := a.Revision
	a.Revision = ""                       // The name makes no other artifact.
	lease, shared, err := c.join(a, want) //nolint:contextcheck // A flight belongs to all who wait for it.
	if shared == nil {
		c.options.Observer.Hit()
		return lease, withRevision(a, revision, err)
	}
	select {
	case <-shared.done:
	case <-ctx.Done():
		c.leave(shared)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, withRevision(a, revision, shared.lastFailure(ctx.Err()))
		}
		return nil, ctx.Err()
	}
	if shared.err != nil {
		c.leave(shared)
		return nil, withRevision(a, revision, shared.err)
	}
	// The flight holds a lease for each of those who wait.
	return c.lease(shared.entry), nil
}

func withRevision(a Artifact, revision string, err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	a.Revision = revision
	return explain(a, err)
}

// join finds the artifact, or the flight that brings it, which it starts if there is none.
func (c *Cache) join(a Artifact, want sum) (*Lease, *flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	if found, ok := c.entries[a.Digest]; ok {
		c.use(found)
		if found.err != nil {
			c.unuse(found)
			return nil, nil, found.err
		}
		return c.lease(found), nil, nil
	}
	if shared, ok := c.flights[a]; ok {
		shared.waiting++
		return nil, shared, nil
	}
	started := newFlight(a, want)
	c.flights[a] = started
	go c.fly(started)
	return nil, started, nil
}

// leave ends the interest of one waiter. The last one ends the flight.
func (c *Cache) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiting--
	if f.landed {
		// The flight landed while we turned away, with a lease for us.
		if f.err == nil {
			c.unuse(f.entry)
		}
		return
	}
	if f.waiting == 0 {
		// Who asks from now on starts anew.
		delete(c.flights, f.artifact)
		f.cancel()
	}
}

// land makes known what a flight brought.
func (c *Cache) land(f *flight, got *entry, err error) {
	c.mu.Lock()
	if c.flights[f.artifact] == f {
		delete(c.flights, f.artifact)
	}
	f.landed, f.err = true, err
	if err == nil {
		f.entry = c.keep(got, f.waiting)
		f.err = f.entry.err
	}
	count, bytes := len(c.entries), c.bytes
	c.mu.Unlock()
	f.cancel()
	close(f.done)
	c.options.Observer.Held(count, bytes)
}

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

// lease wraps one use of an entry that is counted already.
func (c *Cache) lease(used *entry) *Lease {
	return &Lease{FS: used.tree, release: sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unuse(used)
	})}
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
