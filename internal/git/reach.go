package git

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/transport"
)

const (
	// firstDepth is how many generations of commits the first step goes back. The next one goes twice as far.
	firstDepth = 256
	// stepCommits, stepBytes and stepUnpacked bound one step; it is made again with half the depth if it is larger.
	stepCommits  = 1 << 16
	stepBytes    = 64 << 20
	stepUnpacked = 256 << 20
	// seenBytes is what it takes in memory to remember a commit, askBytes to ask for one.
	seenBytes = 64
	askBytes  = 160
)

// errStep says that a step was too large.
var errStep = errors.New("too many commits in one step")

// Reaches proves that the commit is the tip or in its history, by the commits between the two: the id of each is the hash
// of what it says of its parents. Without a proof it is an error: ErrRefNotFound when the commit is not there, ErrLimit
// when that takes more than Options allow.
func (c *Client) Reaches(ctx context.Context, remote Remote, tip Want, commit string) error {
	if tip.Hash == commit {
		return nil
	}
	w := &walk{
		client: c, meter: &meter{}, tip: request{Want: tip, hash: plumbing.NewHash(tip.Hash), filter: allButCommits},
		commit: plumbing.NewHash(commit), depth: firstDepth, growing: true, seen: map[plumbing.Hash]struct{}{},
	}
	w.next = []plumbing.Hash{w.tip.hash}
	defer func() { c.options.Observe(w.meter.total()) }()
	var err error
	for again := true; again; {
		err = c.converse(ctx, remote, w.meter, func(p peer) error { return w.run(ctx, p) })
		// Only the history as a whole is left where commits are not given out alone, or not by their ids.
		again = errors.Is(err, errStep) || errors.Is(err, errNoFilter) && w.tip.filter != "" || errors.Is(err, errNotWantable) && !w.whole
		if errors.Is(err, errNoFilter) {
			w.tip.filter = ""
		}
		w.whole = w.whole || errors.Is(err, errNotWantable)
	}
	if errors.Is(err, ErrLimit) {
		err = fmt.Errorf("cannot tell whether it is there within --git-max-objects and --git-max-pack-bytes: %w", err)
	}
	return conclude(ctx, "look for "+commit+" in "+transport.PrintableQuoted(tip.Ref)+" of", remote, err)
}

// walk goes from a tip to a commit. What it has seen outlives the connection that it was seen over.
type walk struct {
	client *Client
	meter  *meter
	tip    request
	commit plumbing.Hash

	whole   bool // in one step
	known   bool // the server has the commit
	depth   int
	growing bool
	next    []plumbing.Hash // reached, and not there yet
	seen    map[plumbing.Hash]struct{}
}

func (w *walk) run(ctx context.Context, p peer) error {
	caps := p.advert().caps
	if p.advert().version != 2 || w.whole || w.tip.filter == "" || !caps.fetch("filter") || !caps.fetch("shallow") {
		return w.atOnce(ctx, p)
	}
	limits := packLimits{objects: stepCommits, object: w.client.options.MaxObjectBytes, delta: largeObject, unpacked: stepUnpacked}
	if !w.known {
		// A server that lacks the commit would give the whole history out, for there is nothing to leave out.
		commit, err := w.ask(ctx, p, question{wants: []string{w.commit.String()}, depth: 1, bytes: stepBytes}, limits)
		if err != nil {
			return err
		}
		w.known = true
		_ = commit.Close() // It was not even read.
	}
	for len(w.next) > 0 {
		found, err := w.step(ctx, p, limits)
		if err != nil || found {
			return err
		}
	}
	return w.notFound()
}

// step asks for some generations of commits, and follows them.
func (w *walk) step(ctx context.Context, p peer, limits packLimits) (found bool, err error) {
	asking := askBytes * int64(len(w.next))
	if err := memory.Draw(ctx, asking); err != nil {
		return false, err
	}
	defer memory.Return(ctx, asking)
	wants := make([]string, len(w.next))
	for i, hash := range w.next {
		wants[i] = hash.String()
	}
	history, err := w.ask(ctx, p, question{wants: wants, haves: []string{w.commit.String()}, depth: w.depth, bytes: stepBytes}, limits)
	if errors.Is(err, ErrLimit) && w.depth > 1 && w.left() > 0 {
		w.depth, w.growing = w.depth/2, false
		return false, errStep
	}
	if err != nil {
		return false, err
	}
	if w.growing && len(history.objects) < stepCommits/4 {
		w.depth *= 2
	}
	return w.follow(ctx, history)
}

// atOnce asks for the whole history up to the commit's own.
func (w *walk) atOnce(ctx context.Context, p peer) error {
	tip := w.tip
	wants, err := chooseWants(p.advert(), p.advert().refs, &tip)
	if err != nil {
		return err
	}
	limits := w.client.options.packLimits()
	history, err := w.ask(ctx, p, question{wants: wants, haves: []string{w.commit.String()}, bytes: w.client.options.MaxPackBytes}, limits)
	if err != nil {
		return err
	}
	clear(w.seen)
	w.next = []plumbing.Hash{w.tip.hash}
	if found, err := w.follow(ctx, history); err != nil || found {
		return err
	}
	return w.notFound()
}

func (w *walk) notFound() error {
	return fmt.Errorf("%w: it is not in the history of %s", ErrRefNotFound, transport.PrintableQuoted(w.tip.Ref))
}

// left is how many bytes may still come.
func (w *walk) left() int64 { return w.client.options.MaxPackBytes - w.meter.total() }

// ask receives commits within what is left of the limits.
func (w *walk) ask(ctx context.Context, p peer, q question, limits packLimits) (*pack, error) {
	if w.left() <= 0 {
		return nil, limitErrorf("the history takes more than %d bytes", w.client.options.MaxPackBytes)
	}
	if len(w.seen) > w.client.options.MaxObjects {
		return nil, limitErrorf("the history has more than %d commits", w.client.options.MaxObjects)
	}
	q.filter, q.bytes = w.tip.filter, min(q.bytes, w.left())
	history, err := w.client.receive(ctx, p, q, limits, nil, nil)
	return history, explainRemote(p.advert(), w.tip, err)
}

// follow goes from commits to their parents as far as the pack has them, and leaves those that come next. A commit that
// was asked for and is not in the pack is in the history of the one that is looked for, and leads nowhere.
func (w *walk) follow(ctx context.Context, history *pack) (found bool, err error) {
	defer func() { err = errors.Join(err, history.Close()) }()
	asked, queue := len(w.next), w.next
	w.next = nil
	for i := 0; i < len(queue); i++ {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if _, here := history.lookUp(queue[i]); !here {
			if i >= asked {
				w.next = append(w.next, queue[i])
			}
			continue
		}
		commit, err := history.loadCommit(ctx, queue[i])
		if err != nil {
			return false, err
		}
		if slices.Contains(commit.parents, w.commit) {
			return true, nil
		}
		fresh, err := w.remember(ctx, commit.parents)
		if err != nil {
			return false, err
		}
		queue = append(queue, fresh...)
	}
	return false, nil
}

// remember leaves those of the commits that are seen for the first time. A commit may name thousands that nobody has.
func (w *walk) remember(ctx context.Context, commits []plumbing.Hash) ([]plumbing.Hash, error) {
	fresh := commits[:0]
	for _, commit := range commits {
		if _, seen := w.seen[commit]; seen {
			continue
		}
		if err := memory.Draw(ctx, seenBytes); err != nil {
			return nil, err
		}
		w.seen[commit] = struct{}{}
		fresh = append(fresh, commit)
	}
	return fresh, nil
}
