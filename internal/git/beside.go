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
	found := map[string]bool{}
	err := c.beside(ctx, remote, tip, commits, func(history *pack, commit plumbing.Hash) error {
		if at, isThere := history.lookUp(commit); isThere && history.objects[at].kind == plumbing.CommitObject {
			found[commit.String()] = true
		}
		return nil
	})
	return found, err
}

// StandsOn returns the commits in the history of the tip that a commit stands on: those that commits of its own history, which the tip
// does not have, were made on. It is the commit itself if the tip's history has it, and empty if the two have nothing in common.
func (c *Client) StandsOn(ctx context.Context, remote Remote, tip, commit Want) (bases []string, err error) {
	err = c.beside(ctx, remote, tip, []Want{commit}, func(history *pack, commit plumbing.Hash) error {
		bases = nil
		seen := map[plumbing.Hash]bool{commit: true}
		for queue := []plumbing.Hash{commit}; len(queue) > 0; queue = queue[1:] {
			if _, isThere := history.lookUp(queue[0]); !isThere {
				bases = append(bases, queue[0].String())
				continue
			}
			header, err := history.loadCommit(ctx, queue[0])
			if err != nil {
				return err
			}
			for _, parent := range header.parents {
				if !seen[parent] {
					seen[parent] = true
					queue = append(queue, parent)
				}
			}
		}
		return nil
	})
	return bases, err
}

// beside looks up each of the commits in the histories that the server sends without that of the tip.
func (c *Client) beside(ctx context.Context, remote Remote, tip Want, commits []Want, lookUp func(*pack, plumbing.Hash) error) error {
	b := &besides{client: c, meter: &meter{}, tip: request{Want: tip, filter: allButCommits, whole: true}, left: commits, lookUp: lookUp}
	defer func() { c.options.Observe(b.meter.total()) }()
	var err error
	for again := true; again; {
		err = c.converse(ctx, remote, b.meter, func(p peer) error { return b.run(ctx, p) })
		if again = errors.Is(err, errNoFilter) && b.tip.filter != ""; again {
			b.tip.filter = ""
		}
	}
	return conclude(ctx, "compare commits with "+transport.PrintableQuoted(tip.Ref)+" of", remote, err)
}

// besides is one comparison. It can continue over another connection.
type besides struct {
	client *Client
	meter  *meter
	tip    request
	left   []Want
	lookUp func(history *pack, commit plumbing.Hash) error
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
		err = errors.Join(err, b.lookUp(history, plumbing.NewHash(commit.Hash)))
	}
	return errors.Join(err, history.Close())
}
