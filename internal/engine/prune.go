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

// prunable says that there are leftovers, and that they are to go.
func (r *round) prunable() bool {
	return r.in.Spec.PruneEnabled() && len(r.leftovers()) > 0
}

// leftovers are the members that no release needs any more, and that are not known to be gone.
func (r *round) leftovers() []modulesv1.Member {
	return slices.DeleteFunc(r.remaining(), func(m modulesv1.Member) bool { return wanted(&m) })
}

// prune removes the leftovers, last stage first. All that the release needs is applied and healthy by now. Which are
// to go is written down before the first delete, and none is forgotten before it is known to be gone.
func (r *round) prune(ctx context.Context) (bool, error) {
	if r.record.Data.Attempt.Stage != modulesv1.StagePruning {
		if err := r.mayPrune(ctx); err != nil {
			return false, err
		}
		return true, r.save(ctx, func(data *modulesv1.InventoryData) {
			data.Attempt.Stage = modulesv1.StagePruning
			for i := range data.Members {
				if m := &data.Members[i]; !wanted(m) {
					m.State = modulesv1.MemberDeleting
				}
			}
		})
	}
	return r.removeStage(ctx, StagePrune, modulesv1.PruneFailedReason, r.leftovers())
}

// mayPrune says why the leftovers may not go: they are too many, or one of them is held.
func (r *round) mayPrune(ctx context.Context) error {
	var existing, all int
	var failed []memberError
	removal, err := r.removal(ctx)
	if err != nil {
		return failure.At(StagePrune, failure.Retry(modulesv1.PruneFailedReason, err))
	}
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if m.UID == "" {
			continue
		}
		all++
		if wanted(m) {
			continue
		}
		existing++
		if kindOf(m).GroupKind() == definitionKind() {
			if err := r.mayGo(ctx, removal, m); err != nil {
				failed = append(failed, memberError{refOf(m), err})
			}
		}
	}
	if percent := int(r.in.Spec.GetPruneMaxPercent()); existing*100 > percent*all {
		return failure.At(StagePrune, failure.Retry(modulesv1.PruneBlockedReason, fmt.Errorf(
			"%d of %s would be removed, and prune.maxPercent allows %d %%", existing, objects(all), percent)))
	}
	return joined(StagePrune, modulesv1.PruneBlockedReason, failed)
}

// mayGo says why a member is held.
func (r *round) mayGo(ctx context.Context, removal *removal, m *modulesv1.Member) error {
	if err := r.over(ctx); err != nil {
		return err
	}
	ref, live, err := find(ctx, r.client, refOf(m))
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	what, why, err := removal.judge(ctx, removal.known(m, live), ref, live)
	if err == nil && what == held {
		err = stays(ref, why)
	}
	return err
}

// stays is the error of a member that is held.
func stays(ref cluster.Ref, why string) error { return fmt.Errorf("%s stays: %s", describe(ref), why) }

// removeStage removes the members of the last stage, or lets go of all. It says whether the stage before may follow.
func (r *round) removeStage(ctx context.Context, stage failure.Stage, reason string, members []modulesv1.Member) (bool, error) {
	removal, err := r.removal(ctx)
	if err != nil {
		return false, failure.At(stage, failure.Retry(reason, err))
	}
	last := 0
	for i := range members {
		last = max(last, cluster.Stage(kindOf(&members[i])))
	}
	members = slices.DeleteFunc(slices.Clone(members), func(m modulesv1.Member) bool {
		return !removal.orphan && cluster.Stage(kindOf(&m)) != last
	})
	slices.SortFunc(members, func(a, b modulesv1.Member) int { return cmp.Compare(a.Name, b.Name) })
	return r.settle(ctx, stage, reason, r.remove(ctx, removal, members))
}

// remove removes the members, in parallel.
func (r *round) remove(ctx context.Context, removal *removal, members []modulesv1.Member) []removed {
	return each(func() error { return r.over(ctx) }, members,
		func(m modulesv1.Member) removed { return removal.remove(ctx, m) },
		func(m modulesv1.Member, err error) removed { return removed{member: m, err: err} })
}

// settle forgets the members that are gone or let go of, and tells what became of all.
func (r *round) settle(ctx context.Context, stage failure.Stage, reason string, all []removed) (bool, error) {
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
			r.removed[keyOf(&one.member)] = letGo
		case one.err != nil:
			failed = append(failed, memberError{ref, r.withoutRights(one.err)})
		case one.fate == held:
			kept = append(kept, memberError{ref, stays(ref, one.why)})
		case !one.over:
			waiting = true
			r.waitFor(ref, "is being deleted")
			r.again(r.goingAgain(&one.member))
		default:
			r.removed[keyOf(&one.member)] = one.fate
			if one.fate == inherited {
				r.note(modulesv1.HandedOverReason, "handed %s over to the installation %s/%s, which claims it", describe(ref), one.heir.Namespace, one.heir.Name)
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
	if (err != nil || waiting) && len(r.removed) > 0 {
		// Otherwise another stage or the end follows at once, and writes down all of it.
		err = errors.Join(err, r.save(ctx, r.shrink))
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
func (r *round) tell(stage failure.Stage, told farewells) {
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
