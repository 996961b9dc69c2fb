package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// heal applies again the members that are not as they were applied, each with one call, and no others. Nothing is
// rendered, and nothing asked of the API server, while all are.
func (r *round) heal(ctx context.Context) (bool, error) {
	r.watch(r.record.Data.Members) //nolint:contextcheck // Watches outlive the round that asks for them.
	r.askRights(ctx)
	if r.in.Verify {
		// Whoever asks may have ended the fight. If not, it is noticed again before long.
		clear(r.memory.fights)
	}
	if err := r.recordEnds(ctx); err != nil {
		return false, err
	}
	drifted := r.drifted()
	if len(drifted) == 0 {
		return true, nil
	}
	made, err := r.renders.objects(ctx, r.kept)
	if err != nil {
		return false, err
	}
	todo := slices.DeleteFunc(slices.Clone(made.objects), func(o object) bool { return !drifted[o.key] })
	return true, r.restore(ctx, todo, true)
}

// drifted are the members that the watch sees otherwise than they were applied, and that are not fought over just now.
func (r *round) drifted() map[key]bool {
	drifted := map[key]bool{}
	now := r.engine.clock.Now()
	for m := range every(r.record.Data.Members) {
		if !wanted(m) || r.gone(m) {
			continue
		}
		meta, known := r.state(m)
		undone := known && (meta == nil || !meta.Ignored) && r.hasDrifted(m, meta)
		// It is a fight until the pause after the last healing has passed in peace.
		if wait := r.memory.fights.wait(keyOf(m), now, undone); wait > 0 {
			r.contested(m, wait)
		} else if undone {
			drifted[keyOf(m)] = true
		}
	}
	return drifted
}

// restore applies members again and writes down what came of it, if that is anything new.
func (r *round) restore(ctx context.Context, todo []object, drift bool) error {
	before := index(r.record.Data.Members)
	var failed []memberError
	news := map[key]progress{}
	for _, one := range r.applyAll(ctx, todo) {
		k, m := one.of.key, before[one.of.key]
		if !errors.Is(one.err, errLate) {
			delete(r.memory.verifying, k)
		}
		if one.err != nil {
			failed = append(failed, memberError{refOfObject(one.of.Unstructured), one.err})
		}
		changed := m != nil && (string(one.found.applied.UID) != m.UID || one.found.applied.Fingerprint != m.Fingerprint)
		if claim := one.found.claim; m != nil && claim != nil && !claim.isOn(r.record, m) || one.err == nil && changed {
			news[k] = one.found.progress
		}
		// Whoever held fields of ours had changed them, even if the fingerprint is the same within one second.
		if m != nil && one.err == nil && !one.found.left && (drift || changed || len(one.found.notes) > 0) {
			r.healed(m, one.found)
		}
	}
	r.out.Notes = fewer(r.out.Notes)
	err := joined(StageApply, modulesv1.ApplyFailedReason, failed)
	if len(news) > 0 {
		err = errors.Join(err, r.store(ctx, func(record *modulesv1.Inventory) { fold(record, news) }))
	}
	return err
}

// healed tells of a member that was brought back to what it was.
func (r *round) healed(m *modulesv1.Member, one result) {
	verb := "restored"
	if one.applied.Created {
		verb = "created again"
	}
	r.out.note(modulesv1.DriftHealedReason, "%s %s", verb, describe(refOf(m)))
	if wait := r.memory.fights.heal(keyOf(m), strings.Join(one.rivals, ", "), r.engine.clock.Now()); wait > 0 {
		r.contested(m, wait)
	}
}

func (r *round) contested(m *modulesv1.Member, wait time.Duration) {
	r.out.again(wait)
	message := cmp.Or(r.memory.fights[keyOf(m)].by, "somebody") + " changes it back again and again, so that it is healed less often meanwhile"
	r.out.Contested = append(r.out.Contested, Problem{Ref: refOf(m), Reason: modulesv1.DriftContestedReason, Message: message})
}

// recordEnds writes down which Jobs have ended, before they are forgotten by everybody else.
func (r *round) recordEnds(ctx context.Context) error {
	if !slices.ContainsFunc(r.members(), func(m modulesv1.Member) bool { return wanted(&m) && !m.Ended && r.gone(&m) }) {
		return nil
	}
	return r.save(ctx, r.markEnds)
}

// markEnds marks the Jobs that have ended.
func (r *round) markEnds(data *modulesv1.InventoryData) {
	for m := range every(data.Members) {
		m.Ended = wanted(m) && r.ended(m)
	}
}

// verifyEvery is the time between two full verifications; each installation has its own moment in it.
const verifyEvery = 24 * time.Hour

// verifiable says that members are to be applied once again: by wish, by time, or because some cannot be watched.
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
		r.out.again(left)
		return false
	}
	return true
}

// verify applies all members once, or those that cannot be watched: it finds what fingerprints cannot show.
func (r *round) verify(ctx context.Context) (bool, error) {
	made, err := r.renders.objects(ctx, r.kept)
	if err != nil {
		return false, err
	}
	now := r.engine.clock.Now()
	if r.in.Verify || !now.Before(r.memory.verifyAt) {
		r.memory.verifyAt = nextVerification(r.in.UID, now)
		r.memory.verifying = maps.Clone(made.keys)
	}
	only := r.memory.verifying
	if len(only) == 0 {
		only = r.blind(r.record.Data.Members)
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
	return true, r.restore(ctx, todo, false)
}

const (
	// fightPeace is how long a healing has to last after its pause for the next one to be another story.
	fightPeace = time.Minute
	// fightFrom is how many healings that did not last are a fight; each further one doubles the pause up to lastPause.
	fightFrom  = 4
	firstPause = 30 * time.Second
	lastPause  = 10 * time.Minute
)

// fights notice members that somebody else changes back soon after each healing, so that two programs do not write for
// ever as fast as they can. Changes with some time of peace between them are no fight, however many they are.
type fights map[key]fight

// fight is what is known of one member. One that is deleted again and again is fought over as well.
type fight struct {
	count  int
	healed time.Time
	// undone says that it was seen to be changed back in the pause.
	undone bool
	// by are the managers that had changed it. Whoever deleted it has left no name.
	by string
}

// heal counts a healing, and says how long to wait before the next one: 0 while it is no fight.
func (f fights) heal(k key, by string, now time.Time) time.Duration {
	maps.DeleteFunc(f, func(_ key, known fight) bool {
		return !known.undone && now.Sub(known.healed) > known.pause()+fightPeace
	})
	known := fight{count: f[k].count + 1, healed: now, by: cmp.Or(by, f[k].by)}
	f[k] = known
	return known.pause()
}

// wait is how long the next healing still has to wait: 0 when there is no fight, or the pause is over. Undone says that
// the member is changed back by now: however late it is healed, the fight has gone on.
func (f fights) wait(k key, now time.Time, undone bool) time.Duration {
	known, ok := f[k]
	if !ok {
		return 0
	}
	left := max(0, known.pause()-max(0, now.Sub(known.healed)))
	if left > 0 && undone {
		known.undone = true
		f[k] = known
	}
	return left
}

// pause is how long to wait after the healing that made the count.
func (f fight) pause() time.Duration {
	wait := time.Duration(0)
	for count := fightFrom; count <= f.count && wait < lastPause; count++ {
		wait = max(2*wait, firstPause)
	}
	return min(wait, lastPause)
}
