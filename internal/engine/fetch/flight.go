package fetch

import (
	"context"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/fair"
)

// flight is the one attempt to download an artifact that is under way, for all who wait for it.
type flight struct {
	artifact Artifact
	began    time.Time
	before   error         // why the last attempt failed, if there was one
	answered atomic.Bool   // the server gives the artifact
	done     chan struct{} // closed when found is there

	// Under the cache's lock until done is closed.
	waiting int
	found   found
}

// unfinished is why there is no artifact yet. What the last attempt found says more than silence, and as long as it goes
// on like this the error stays the same.
func (f *flight) unfinished() error {
	switch {
	case f.answered.Load():
		return fmt.Errorf("%w: it is still on its way", ErrUnavailable)
	case f.before != nil:
		return f.before
	}
	return fmt.Errorf("%w: no answer yet; is the source's controller running and reachable from here?", ErrUnavailable)
}

// attempt downloads once. A place is held only while bytes come, so that servers which do not answer keep nobody waiting
// but those who ask them.
func (c *Cache) attempt(f *flight) (*entry, error) {
	ctx, cancel := context.WithTimeout(c.open, c.options.Attempt)
	defer cancel()
	var slot *fair.Share
	tree, count, err := c.download(ctx, f.artifact, func() (err error) {
		f.answered.Store(true)
		if slot, err = c.slots.Take(ctx, fair.Wish{Namespace: f.artifact.Namespace}); err != nil {
			return fmt.Errorf("%w: too many others are downloaded: %w", ErrUnavailable, err)
		}
		return nil
	})
	slot.Release()
	c.options.Observer.Downloaded(count, err)
	if err != nil {
		return nil, err
	}
	return &entry{digest: f.artifact.Digest, tree: tree, weight: weigh(tree)}, nil
}

// fly makes known what a flight brought, or why it brought nothing. The flight holds a lease for each of those who wait.
func (c *Cache) fly(f *flight) {
	got, err := c.attempt(f)
	c.mu.Lock()
	delete(c.flights, f.artifact)
	switch {
	case err == nil:
		c.absent.Remove(f.artifact)
		f.found.entry = c.keep(got, f.waiting)
	case c.open.Err() != nil:
		f.found.err = ErrClosed
	default:
		f.found = found{err: err, after: c.missed(f.artifact, err)}
	}
	close(f.done)
	count, bytes := len(c.entries), c.bytes
	c.mu.Unlock()
	c.options.Observer.Held(count, bytes)
}

// entryWeight is what a file or folder weighs beside its content.
const entryWeight = 512

func weigh(tree *archive.Tree) (weight int64) {
	_ = fs.WalkDir(tree, ".", func(_ string, found fs.DirEntry, err error) error { // A tree in memory has no errors.
		if info, err := found.Info(); err == nil {
			weight += info.Size() + entryWeight
		}
		return err
	})
	return weight
}
