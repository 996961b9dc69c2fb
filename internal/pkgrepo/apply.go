package pkgrepo

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
)

// Apply carries out changes, all together in one fetch and one push for publications and one for drafts. Changes that are of
// several refs are made in one step, or, on a server that cannot do that, in an order that Sync completes after a crash.
// What is slow to make is made last, and what is done is pushed before it.
// Every ref moves from where it was expected to be: if somebody else was first, the repository is looked at again and the
// change is made again, a few times. One bad change harms no other.
//
// There is a result for each change, in their order. An error of the connection is that of all changes which it struck; they
// may have been made then, which is recognised when they are asked for again.
func (r *Repository) Apply(ctx context.Context, changes []Change) []Result {
	results := make([]Result, len(changes))
	w, end, err := r.alone(ctx)
	if err == nil && w.settings.Push.URL == "" {
		end()
		err = ErrReadOnly
	}
	if err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	defer end()
	tasks := w.newTasks(changes)
	leftovers := w.newPruning(tasks)
	w.carryOut(ctx, tasks, leftovers)
	leftovers.finish(ctx)
	for i, t := range tasks {
		results[i], results[i].Took = t.result, t.took
	}
	return results
}

// maxTries is how often a change is tried that loses races.
const maxTries = 5

// carryOut tries until all tasks are done.
func (w work) carryOut(ctx context.Context, tasks []*task, leftovers *pruning) {
	races, broken, refusals := 0, 0, 0
	forMaking := &share{}
	defer forMaking.close()
	for {
		left := open(tasks)
		if len(left) == 0 {
			return
		}
		s, err := w.sync(ctx)
		if err != nil {
			failAll(left, err)
			return
		}
		p := &publisher{work: w, snapshot: s, refusals: refusals, pruning: leftovers, share: forMaking}
		for _, together := range []bool{true, false} {
			if err = p.attempt(ctx, left, together); err != nil {
				break
			}
		}
		refusals = p.refusals
		switch {
		case err != nil && (broken > 0 || !isPassing(err)):
			failAll(open(left), err)
			return
		case err != nil:
			broken++ // What was done all the same is seen at the next look.
		case p.settled == 0:
			races++
		}
		if races >= maxTries {
			for _, t := range open(left) {
				t.fail(fmt.Errorf("after %d tries: %w", races, t.lost))
			}
			return
		}
	}
}

func open(tasks []*task) (left []*task) {
	for _, t := range tasks {
		if !t.done {
			left = append(left, t)
		}
	}
	return left
}

func failAll(tasks []*task, err error) {
	for _, t := range tasks {
		t.fail(err)
	}
}

// isPassing tells whether an error of a push may be gone at the next one.
func isPassing(err error) bool {
	return !isAny(err, context.Canceled, context.DeadlineExceeded, git.ErrURL, git.ErrCredential, git.ErrAuthentication, git.ErrHostKey,
		git.ErrNotFound, git.ErrLimit, git.ErrRejected, git.ErrIdentity, memory.ErrBudget, memory.ErrShortage)
}
