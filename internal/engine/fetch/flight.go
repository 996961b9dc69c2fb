package fetch

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/fair"
)

// flight is the one attempt to download an artifact that is under way, for all who wait for it.
type flight struct {
	artifact Artifact
	began    time.Time
	before   error           // why the last attempt failed, if there was one
	ctx      context.Context //nolint:containedctx // The flight outlives the call that started it.
	cancel   context.CancelFunc
	answered chan struct{} // closed when the server gives the artifact
	done     chan struct{} // closed when found is there

	// Under the cache's lock until done is closed.
	waiting int
	landed  bool
	found   found
}

// newFlight belongs to nobody's context: those who wait come and go.
func newFlight(a Artifact, now time.Time, before error) *flight {
	ctx, cancel := context.WithCancel(context.Background())
	return &flight{
		artifact: a, began: now, before: before, ctx: ctx, cancel: cancel,
		answered: make(chan struct{}), done: make(chan struct{}), waiting: 1,
	}
}

// unfinished is why there is no artifact yet. What the last attempt found says more than silence, and as long as it goes
// on like this the error stays the same.
func (f *flight) unfinished() error {
	select {
	case <-f.answered:
		return fmt.Errorf("%w: it is still on its way", ErrUnavailable)
	default:
	}
	if f.before != nil {
		return f.before
	}
	return fmt.Errorf("%w: no answer yet; is the source's controller running and reachable from here?", ErrUnavailable)
}

// attempt downloads once. A place is held only while bytes come, so that servers which do not answer keep nobody waiting
// but those who ask them.
func (c *Cache) attempt(f *flight) (*entry, error) {
	ctx, cancel := context.WithTimeout(f.ctx, c.options.Attempt)
	defer cancel()
	var slot *fair.Share
	tree, count, err := c.download(ctx, f.artifact, func() (err error) {
		close(f.answered)
		if slot, err = c.slots.Take(ctx, fair.Wish{Namespace: f.artifact.Namespace}); err != nil {
			return fmt.Errorf("%w: too many others are downloaded: %w", ErrUnavailable, err)
		}
		return nil
	})
	slot.Release()
	c.options.Observer.Downloaded(count, err)
	switch {
	case f.ctx.Err() != nil:
		// Only Close calls a flight back.
		(&entry{tree: tree}).drop()
		return nil, ErrClosed
	case err != nil && isVerdict(err):
		return &entry{digest: f.artifact.Digest, err: err, weight: entryWeight}, nil
	case err != nil:
		return nil, err
	}
	weight, err := weigh(tree)
	if err != nil {
		(&entry{tree: tree}).drop()
		return nil, err
	}
	return &entry{digest: f.artifact.Digest, tree: tree, weight: weight}, nil
}

// fly makes known what a flight brought, or why it brought nothing. The flight holds a lease for each of those who wait.
func (c *Cache) fly(f *flight) {
	got, err := c.attempt(f)
	c.mu.Lock()
	delete(c.flights, f.artifact)
	f.landed = true
	switch {
	case err == nil:
		c.absent.Remove(f.artifact)
		there := c.keep(got, f.waiting)
		f.found = found{entry: there, err: there.err}
	case c.closed:
		f.found = found{err: ErrClosed}
	default:
		f.found = found{err: err, after: c.missed(f.artifact, err)}
	}
	count, bytes := len(c.entries), c.bytes
	c.mu.Unlock()
	f.cancel()
	close(f.done)
	c.options.Observer.Held(count, bytes)
}

// entryWeight is what a file or folder weighs beside its content.
const entryWeight = 512

func weigh(tree *archive.Tree) (weight int64, err error) {
	err = fs.WalkDir(tree, ".", func(_ string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		weight += info.Size() + entryWeight
		return nil
	})
	return weight, err
}
