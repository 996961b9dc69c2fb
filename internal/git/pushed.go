package git

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// remember puts the commits that the server took into the cache, so that they are not fetched again. What cannot be kept is
// fetched like anybody else's.
func (c *Client) remember(ctx context.Context, key string, p *push) {
	var tips []plumbing.Hash
	var fresh []member
	for i := range p.commands {
		done := &p.commands[i]
		if hash := plumbing.NewHash(done.New); done.err == nil && p.Objects.made(hash) {
			tips = append(tips, hash)
			fresh = append(fresh, member{hash, refID(done.Ref)})
		}
	}
	if len(tips) == 0 || ctx.Err() != nil {
		return
	}
	if err := c.keepPushed(ctx, key, p.Objects, tips, fresh); err != nil {
		c.options.CacheFailed(fmt.Errorf("keep what was pushed: %w", err))
	}
}

// made tells whether the object is one of those that are new.
func (o *Objects) made(hash plumbing.Hash) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.places[hash]
	return ok
}

func (c *Client) keepPushed(ctx context.Context, key string, from *Objects, tips []plumbing.Hash, fresh []member) error {
	content, objects, err := from.choose(ctx, tips)
	if err != nil {
		return err
	}
	h := c.cache.holdFree(key) // The push is done, and waits for nobody's fetch.
	if h == nil {
		return nil
	}
	defer h.release(ctx)
	earlier, err := h.load(ctx)
	if err != nil {
		return err
	}
	p := newPack(ctx, earlier.spool(), earlier, c.options.packLimits(), c.options.TempDir)
	defer func() { _ = p.Close() }() // It was only read.
	dir := c.options.TempDir
	if earlier == nil {
		dir, p.spool.named = h.room(dir)
	}
	if err := p.adopt(ctx, content, objects, dir); err != nil {
		return err
	}
	if fresh, err = p.complete(ctx, earlier, fresh); len(fresh) == 0 || err != nil {
		return err
	}
	return h.keepAll(ctx, p, earlier, fresh)
}

// adopt adds objects that are no deltas, unless they are there.
func (p *pack) adopt(ctx context.Context, content io.ReaderAt, objects []packed, dir string) error {
	if err := p.draw(ctx, int64(len(objects))*entryCost); err != nil {
		return err
	}
	to := &adding{ctx, p.spool, dir}
	for _, object := range objects {
		if _, isThere := p.lookUp(object.hash); isThere {
			continue
		}
		at := p.spool.end()
		if _, err := io.Copy(to, io.NewSectionReader(content, object.data, object.length)); err != nil {
			return err
		}
		object.data = at
		p.objects = append(p.objects, object)
	}
	(&indexer{pack: p}).sort()
	return nil
}

// complete leaves those of the commits of which all is there: a base that was fetched in part, or that the cache has forgotten,
// takes down what was built on it.
func (p *pack) complete(ctx context.Context, earlier *kept, all []member) ([]member, error) {
	var found []member
	for _, m := range all {
		err := p.connect(ctx, earlier, tip{m.commit, false})
		if err == nil {
			found = append(found, m)
		} else if !errors.Is(err, errIncomplete) {
			return nil, err
		}
	}
	return found, nil
}
