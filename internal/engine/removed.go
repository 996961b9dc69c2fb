package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// removeStage removes those of the members that are of the last stage, in parallel, and forgets those that are gone.
// It says whether all are, so that the stage before may follow.
func (r *round) removeStage(ctx context.Context, stage Stage, reason string, members []modulesv1.Member) (bool, error) {
	removal, err := r.removal(ctx)
	if err != nil {
		return false, failure.At(stage, failure.Retry(reason, err))
	}
	last := 0
	for i := range members {
		last = max(last, cluster.Stage(kindOf(&members[i])))
	}
	members = slices.DeleteFunc(slices.Clone(members), func(m modulesv1.Member) bool { return cluster.Stage(kindOf(&m)) != last })
	slices.SortFunc(members, func(a, b modulesv1.Member) int { return cmp.Compare(a.Name, b.Name) })
	return r.settle(ctx, stage, reason, r.remove(ctx, removal, members))
}

// remove removes the members, in parallel.
func (r *round) remove(ctx context.Context, removal *removal, members []modulesv1.Member) []removed {
	return each(func() error { return r.over(ctx) }, r.engine.options.Parallel, members,
		func(m modulesv1.Member) removed { return removal.remove(ctx, m) },
		func(m modulesv1.Member, err error) removed { return removed{member: m, err: err} })
}

// settle forgets the members that are gone or let go of, and tells what became of all.
func (r *round) settle(ctx context.Context, stage Stage, reason string, all []removed) (bool, error) {
	told := farewells{let: map[string][]string{}}
	var failed, kept []memberError
	waiting := false
	for _, one := range all {
		ref := refOf(&one.member)
		if one.deleted {
			told.deleted = append(told.deleted, describe(ref))
		}
		switch {
		case r.isOutOfReach(one.err) && r.lapsed():
			told.labelled, told.forbidden, r.deprived = append(told.labelled, describe(ref)), one.err, true
			r.forget(keyOf(&one.member), letGo)
		case one.err != nil:
			failed = append(failed, memberError{ref, r.withoutRights(one.err)})
		case one.fate == held:
			kept = append(kept, memberError{ref, stays(ref, one.why)})
		case !one.over:
			waiting = true
			r.waitFor(ref, "is being deleted")
			r.again(r.goingAgain(&one.member))
		default:
			r.forget(keyOf(&one.member), one.fate)
			if one.fate == inherited {
				r.noteBequest(ref, one.heir)
			}
			if one.fate == letGo {
				told.let[one.why] = append(told.let[one.why], describe(ref))
			}
		}
	}
	r.tell(stage, told)
	blocked := modulesv1.PruneBlockedReason
	if stage == StageDelete {
		blocked = modulesv1.DeletionBlockedReason
	}
	err := cmp.Or(joined(stage, reason, failed), joined(stage, blocked, kept))
	if err != nil || waiting {
		// Otherwise another stage or the end follows at once, and writes down all of it.
		err = errors.Join(err, r.saveRemoved(ctx))
	}
	return err == nil && !waiting, err
}

// farewells are the names of members that are none any more.
type farewells struct {
	deleted []string
	// let are those that were let go of, by the reason why.
	let map[string][]string
	// labelled are those whose labels could not be taken off, because that is forbidden.
	labelled  []string
	forbidden error
}

// tell tells what became of members. That one is gone as it should is told once for all of them.
func (r *round) tell(stage Stage, told farewells) {
	r.out.Pruned += len(told.deleted)
	r.out.Notes = fewer(r.out.Notes)
	if stage == StagePrune && len(told.deleted) > 0 {
		r.note(modulesv1.PrunedReason, "removed %s no longer needed: %s", objects(len(told.deleted)), some(told.deleted))
	}
	for _, why := range slices.Sorted(maps.Keys(told.let)) {
		if why == "" {
			continue
		}
		r.note(modulesv1.OrphanedReason, "let go of %s, which is not deleted: %s", some(told.let[why]), why)
	}
	if len(told.labelled) > 0 {
		r.warn(modulesv1.OrphanedReason, "let go of %s without taking the labels off: %v", some(told.labelled), told.forbidden)
	}
}

// goingAgain is when a member that is on its way out is looked at again: the watch tells its end, if there is one.
func (r *round) goingAgain(m *modulesv1.Member) time.Duration {
	if meta, known := r.state(m); known && meta != nil && meta.Deleting {
		return watchedAgain
	}
	return goingAgain
}

// forget notes what became of a member.
func (r *round) forget(k key, what fate) {
	if r.removed == nil {
		r.removed = map[key]fate{}
	}
	r.removed[k] = what
}

// saveRemoved takes the members that are gone out of the record.
func (r *round) saveRemoved(ctx context.Context) error {
	if len(r.removed) == 0 {
		return nil
	}
	return r.save(ctx, r.shrink)
}

// shrink takes the members that are gone, or let go of, out of the data.
func (r *round) shrink(data *modulesv1.InventoryData) {
	data.Members = slices.DeleteFunc(data.Members, func(m modulesv1.Member) bool {
		what, gone := r.removed[keyOf(&m)]
		if gone && what == letGo {
			data.LetGo++
		}
		return gone
	})
}

// some names the first of many, and how many more there are.
func some(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// letGoCount is how many members were let go of so far.
func (r *round) letGoCount() int {
	count := int(r.record.Data.LetGo)
	for i := range r.record.Data.Members {
		if what, gone := r.removed[keyOf(&r.record.Data.Members[i])]; gone && what == letGo {
			count++
		}
	}
	return count
}
