package engine

import (
	"context"
	"maps"
	"slices"
	"time"
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
	case len(r.blind(r.record.Data.Members)) == 0:
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
		full, only = false, r.blind(r.record.Data.Members)
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
