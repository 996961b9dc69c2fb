package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
)

// verifyEvery is the time between two full verifications; each installation has its own moment in it.
const verifyEvery = 24 * time.Hour

// verifiable says that all members are to be applied once again: it was asked for, its time has come, or some cannot
// be watched, so that nothing else tells how they are.
func (r *round) verifiable() bool {
	now := r.engine.clock.Now()
	return r.in.Verify || !now.Before(r.memory.verifyAt) || len(r.memory.verifying) > 0 || r.unseen(now)
}

// unseen says that members cannot be watched, and have not been applied since that began, or for an interval. At first
// it may be the API server alone that is not ready, for all installations at once.
func (r *round) unseen(now time.Time) bool {
	switch {
	case len(r.blind()) == 0:
		r.memory.blindAt = time.Time{}
		return false
	case r.memory.blindAt.IsZero():
		r.memory.blindAt = now.Add(r.in.interval())
	}
	if left := r.memory.blindAt.Sub(now); left > 0 {
		r.again(left)
		return false
	}
	return true
}

// verify applies all members once; where only some cannot be watched, and it is for their sake, these alone. It finds
// what fingerprints cannot show.
func (r *round) verify(ctx context.Context) (bool, error) {
	made, err := r.renders.objects(ctx, r.kept)
	if err != nil {
		return false, err
	}
	now := r.engine.clock.Now()
	if r.in.Verify || !now.Before(r.memory.verifyAt) {
		for !r.memory.verifyAt.After(now) {
			r.memory.verifyAt = r.memory.verifyAt.Add(verifyEvery)
		}
		r.memory.verifying = maps.Clone(made.keys)
	}
	full, only := true, r.memory.verifying
	if len(only) == 0 {
		full, only = false, r.blind()
	}
	r.memory.blindAt = now.Add(r.in.interval())
	known := index(r.record.Data.Members)
	todo := slices.DeleteFunc(slices.Clone(made.objects), func(o object) bool {
		m := known[o.key]
		skip := !only[o.key] || m == nil || r.gone(m) || r.memory.fights.wait(o.key, now, false) > 0
		if skip {
			delete(r.memory.verifying, o.key)
		}
		return skip
	})
	err = r.restore(ctx, todo, false)
	r.out.Verified = full && len(r.memory.verifying) == 0
	return true, err
}

// blind are the members whose watch cannot be opened. Those whose watch is only not ready yet are not among them.
func (r *round) blind() map[key]bool {
	problems := r.engine.parts.Watcher.Problems(r.key())
	if len(problems) == 0 {
		return nil
	}
	unseen := make(map[watch.Subject]bool, len(problems))
	for _, problem := range problems {
		unseen[problem.Subject] = true
	}
	blind := map[key]bool{}
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; wanted(m) && unseen[r.subject(m)] {
			blind[keyOf(m)] = true
		}
	}
	return blind
}

// unwatched tells why members cannot be watched.
func (r *round) unwatched() []Problem {
	var told []Problem
	for _, problem := range r.engine.parts.Watcher.Problems(r.key()) {
		told = append(told, Problem{Ref: cluster.Ref{GVK: problem.Subject.GVK, Namespace: problem.Subject.Namespace}, Message: problem.Message})
	}
	return told
}
