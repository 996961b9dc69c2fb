package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/transport"
)

// commitsAtOnce is how many commits one request asks about.
const commitsAtOnce = 1 << 12

// Beside returns those of the commits that are not in the history of the tip. Each Want has the commit and, for an annotated tag,
// the id of the tag. Objects that are no commits are in no history, and are not returned.
//
// The server compares: it is asked for the commits and told that the tip is there, so that it sends only those that the tip does
// not lead to. Where it can leave out trees and files, it sends commits alone. ErrRefNotFound when it lacks one of the commits,
// or the tip; ErrLimit when the histories beside the tip's are larger than Options allow.
func (c *Client) Beside(ctx context.Context, remote Remote, tip Want, commits []Want) (map[string]bool, error) {
	b := &besides{client: c, meter: &meter{}, tip: request{Want: tip, filter: allButCommits, whole: true}, left: commits, found: map[string]bool{}}
	defer func() { c.options.Observe(b.meter.total()) }()
	var err error
	for again := true; again; {
		err = c.converse(ctx, remote, b.meter, func(p peer) error { return b.run(ctx, p) })
		if again = errors.Is(err, errNoFilter) && b.tip.filter != ""; again {
			b.tip.filter = ""
		}
	}
	return b.found, conclude(ctx, "compare commits with "+transport.PrintableQuoted(tip.Ref)+" of", remote, err)
}

// besides is one comparison. What it has found outlives the connection that it was found over.
type besides struct {
	client *Client
	meter  *meter
	tip    request
	left   []Want
	found  map[string]bool
}

func (b *besides) run(ctx context.Context, p peer) error {
	for len(b.left) > 0 {
		part := b.left[:min(len(b.left), commitsAtOnce)]
		if err := b.compare(ctx, p, part); err != nil {
			return explainRemote(p.advert(), b.tip, err)
		}
		b.left = b.left[len(part):]
	}
	return nil
}

// compare asks about some commits. The tip is one of those that are wanted: a server that lacks it says so, and does not take the
// history of all others for missing.
func (b *besides) compare(ctx context.Context, p peer, commits []Want) error {
	asking := askBytes * int64(len(commits)+1)
	if err := memory.Draw(ctx, asking); err != nil {
		return err
	}
	defer memory.Return(ctx, asking)
	left := b.client.options.MaxPackBytes - b.meter.total()
	if left <= 0 {
		return limitErrorf("the histories take more than %d bytes", b.client.options.MaxPackBytes)
	}
	q := question{wants: []string{b.tip.Hash}, haves: []string{b.tip.Hash}, filter: b.tip.filter, bytes: left}
	for _, commit := range commits {
		hash, err := parseHash(strings.ToLower(commit.Hash))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRefNotFound, err)
		}
		wanted := hash.String()
		if p.advert().version != 2 && commit.Tag != "" {
			wanted = commit.Tag // It gives out what its refs name.
		}
		q.wants = append(q.wants, wanted)
	}
	history, err := b.client.receive(ctx, p, q, b.client.options.packLimits(), nil, nil)
	if err != nil {
		return err
	}
	for _, commit := range commits {
		if at, isThere := history.lookUp(plumbing.NewHash(commit.Hash)); isThere && history.objects[at].kind == plumbing.CommitObject {
			b.found[commit.Hash] = true
		}
	}
	return history.Close()
}
