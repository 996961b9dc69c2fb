package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/archive"
)

// flight is the download of one artifact from one URL, for all who wait for it.
type flight struct {
	artifact Artifact
	want     sum
	ctx      context.Context //nolint:containedctx // The flight outlives the call that started it.
	cancel   context.CancelFunc
	done     chan struct{}
	last     atomic.Pointer[error] // of the last attempt

	// Under the cache's lock until done is closed.
	waiting int
	landed  bool
	entry   *entry
	err     error
}

// newFlight belongs to nobody's context: those who wait come and go.
func newFlight(a Artifact, want sum) *flight {
	ctx, cancel := context.WithCancel(context.Background())
	return &flight{artifact: a, want: want, ctx: ctx, cancel: cancel, done: make(chan struct{}), waiting: 1}
}

// lastFailure is why there is no artifact yet.
func (f *flight) lastFailure(waited error) error {
	if last := f.last.Load(); last != nil {
		return fmt.Errorf("%w (%w)", *last, waited)
	}
	return fmt.Errorf("%w: no answer yet: is the source's controller running and reachable from here? (%w)", ErrUnavailable, waited)
}

// The delays between attempts.
const (
	firstDelay = 250 * time.Millisecond
	maxDelay   = 10 * time.Second
)

func (c *Cache) fly(f *flight) {
	got, err := c.attempts(f)
	c.land(f, got, err)
}

// attempts goes on for as long as another attempt may help.
func (c *Cache) attempts(f *flight) (*entry, error) {
	end := c.options.Clock.Now().Add(c.options.Patience)
	mismatched := false
	for delay := firstDelay; ; delay = min(2*delay, maxDelay) {
		got, err := c.attempt(f)
		var later *retryable
		switch {
		case err == nil:
			return got, nil
		case errors.Is(err, ErrDigest) && !mismatched:
			mismatched = true
		case !errors.As(err, &later):
			return nil, err
		default:
			delay = max(delay, min(later.after, maxDelay))
		}
		f.last.Store(&err)
		if c.options.Clock.Now().Add(delay).After(end) {
			return nil, fmt.Errorf("%w (waited %s for it)", err, c.options.Patience)
		}
		if err := c.sleep(f.ctx, delay); err != nil {
			return nil, c.ended(err)
		}
	}
}

// ended is the error of a flight that was called back: nobody waits for it, unless the cache was closed.
func (c *Cache) ended(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return err
}

func (c *Cache) sleep(ctx context.Context, delay time.Duration) error {
	timer := c.options.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt downloads once. A place is held only meanwhile, so that those who wait for a source keep nobody else waiting.
func (c *Cache) attempt(f *flight) (*entry, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-f.ctx.Done():
		return nil, c.ended(f.ctx.Err())
	}
	ctx, cancel := context.WithTimeout(f.ctx, c.options.Attempt)
	defer cancel()
	tree, count, err := c.download(ctx, f.artifact, f.want)
	c.options.Observer.Downloaded(count, err)
	switch {
	case f.ctx.Err() != nil:
		if tree != nil {
			(&entry{tree: tree}).drop()
		}
		return nil, c.ended(f.ctx.Err())
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
