package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Acquire gives the artifact, from the cache if it is there. However many ask for the same artifact at once, it is
// downloaded once; who stops asking disturbs neither the others nor the download.
//
// Nobody waits for long: without an artifact within Options.Patience, the download goes on without those who asked. What
// failed is tried again only after a delay, which grows to half a minute; who asks sooner is told at once how it failed. An
// artifact of another namespace, URL or digest, or one that was stored anew, is another one in this respect.
//
// The error is a failure that names the URL. With ErrUnavailable and ErrStatus it waits for the time in which another try
// may tell more. With ErrDigest, ErrTooLarge, ErrArtifact and the errors of package archive it is retried. Else it is
// ErrClosed, or that of the context. That an artifact cannot be unpacked is remembered.
//
// Whoever names the digest of an artifact that is in the cache gets it, whatever the URL says.
func (c *Cache) Acquire(ctx context.Context, a Artifact) (*Lease, error) {
	if err := checkDigest(a.Digest); err != nil {
		return nil, explain(a, 0, err)
	}
	found, shared := c.join(a) //nolint:contextcheck // A flight belongs to all who wait for it.
	if shared != nil {
		found = c.await(ctx, shared)
	} else if found.entry != nil {
		c.options.Observer.Hit()
	}
	switch {
	case found.err == nil:
		return &Lease{FS: found.entry.tree, release: sync.OnceFunc(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.use(found.entry, -1)
		})}, nil
	case errors.Is(found.err, ErrClosed):
		return nil, ErrClosed
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	}
	return nil, explain(a, found.after, found.err)
}

// found is what there is of an artifact: an entry that is leased, or the error why there is none.
type found struct {
	entry *entry
	err   error
	after time.Duration // until another look may find more
}

// join finds the artifact, or the flight that brings it, which it starts if there is none and its time has come.
func (c *Cache) join(a Artifact) (found, *flight) {
	a.Revision = "" // The name makes no other artifact.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return found{err: ErrClosed}, nil
	}
	if there, ok := c.entries[a.Digest]; ok {
		c.use(there, 1)
		return found{entry: there}, nil
	}
	if shared, ok := c.flights[a]; ok {
		shared.waiting++
		return found{}, shared
	}
	now := c.options.Clock.Now()
	missing, _ := c.absent.Get(a)
	if wait := missing.until.Sub(now); missing.err != nil && wait > 0 {
		return found{err: missing.err, after: wait}, nil
	}
	started := &flight{artifact: a, began: now, before: missing.err, done: make(chan struct{}), waiting: 1}
	c.flights[a] = started
	go c.fly(started)
	return found{}, started
}

// await waits for a flight for as long as it may still bring something soon.
func (c *Cache) await(ctx context.Context, f *flight) found {
	patience := c.options.Clock.NewTimer(c.options.Patience - c.options.Clock.Since(f.began))
	defer patience.Stop()
	select {
	case <-f.done:
		return f.found
	case <-patience.C():
		return c.leave(f, f.unfinished())
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return c.leave(f, fmt.Errorf("%w (%w)", f.unfinished(), ctx.Err()))
		}
		return c.leave(f, ctx.Err())
	}
}

// leave ends the interest of one waiter, unless the flight has landed meanwhile.
func (c *Cache) leave(f *flight, err error) found {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-f.done:
		return f.found
	default:
	}
	f.waiting--
	// The longer it takes, the later it is worth looking again.
	return found{err: err, after: min(max(c.options.Clock.Since(f.began), firstDelay), maxDelay)}
}
