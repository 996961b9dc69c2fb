package git

import (
	"context"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

// Logged is a commit of a history.
type Logged struct {
	Hash string
	// Message is all of it, its first 64 KiB at most, as it stands in the commit.
	Message string
}

// Log visits the newest commits of a history, so many at most, and as long as visit wants more. It follows first parents alone,
// and ends where the history does. It asks the server for nothing where the cache can tell, and else for commits alone, where
// the server can leave out the rest. ErrRefNotFound when the tip is not there.
func (c *Client) Log(ctx context.Context, remote Remote, tip Want, most int, visit func(Logged) (more bool)) error {
	verb := "read the history of " + transport.PrintableQuoted(tip.Hash) + " of"
	hash, err := parseHash(strings.ToLower(tip.Hash))
	if err != nil {
		return conclude(ctx, verb, remote, fmt.Errorf("%w: %w", ErrRefNotFound, err))
	}
	if _, err := parseEndpoint(remote.URL); err != nil {
		return conclude(ctx, verb, remote, err)
	}
	h, err := c.cache.hold(ctx, remote.Key())
	if err != nil {
		return conclude(ctx, "wait for another fetch from", remote, err)
	}
	defer h.release(ctx)
	most = min(most, maxHistory)
	visited := 0
	l := &lookBack{
		client: c, most: most, depth: min(most, firstLook),
		request: request{Want: tip, hash: hash, filter: allButCommits, held: h},
		match: func(_ context.Context, _ *pack, step historical) (bool, error) {
			if step.at < visited {
				return false, nil
			}
			visited++
			return !visit(Logged{Hash: step.hash.String(), Message: step.message}), nil
		},
	}
	err = l.recall(ctx)
	if err == nil && l.end == unknown {
		err = l.ask(ctx, remote)
	}
	return conclude(ctx, verb, remote, err)
}
