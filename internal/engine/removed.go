package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/printable"
)

// removed is what becomes of an object that is to go.
type removed struct {
	fate fate
	why  string
	// ref and live are the object as it was looked at.
	ref  cluster.Ref
	live *metav1.PartialObjectMetadata
	// heir is who inherited it.
	heir *modulesv1.Inventory
	// over says that it need not be remembered any more, and deleted that it was deleted just now.
	over, deleted bool
}

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
	all := each(ctx, r.over, members, func(m modulesv1.Member) (removed, error) { return removal.remove(ctx, m) })
	return r.settle(ctx, stage, reason, all)
}

// settle forgets the members that are gone or let go of, and tells what became of all.
func (r *round) settle(ctx context.Context, stage failure.Stage, reason string, all []answer[modulesv1.Member, removed]) (bool, error) {
	let := map[string][]string{} // by the reason why
	var deleted, labelled []string
	var failed, kept []memberError
	var waiting bool
	var forbidden error
	for _, one := range all {
		m, done := &one.of, one.found
		ref := refOf(m)
		if done.deleted {
			deleted = append(deleted, describe(ref))
		}
		switch {
		case r.isOutOfReach(one.err) && r.lapsed():
			labelled, forbidden, r.deprived = append(labelled, describe(ref)), one.err, true
			r.removed[keyOf(m)] = letGo
		case one.err != nil:
			failed = append(failed, memberError{ref, r.withoutRights(one.err)})
		case done.fate == held:
			kept = append(kept, memberError{ref, stays(ref, done.why)})
		case !done.over:
			waiting = true
			r.out.waitFor(ref, "is being deleted")
			r.out.again(r.goingAgain(m))
		default:
			r.removed[keyOf(m)] = done.fate
			if done.fate == inherited {
				r.out.note(modulesv1.HandedOverReason, "handed %s over to the installation %s/%s, which claims it", describe(ref), done.heir.Namespace, done.heir.Name)
			}
			if done.fate == letGo && done.why != "" {
				let[done.why] = append(let[done.why], describe(ref))
			}
		}
	}
	r.tellGone(stage, deleted, let)
	if len(labelled) > 0 {
		r.out.warn(modulesv1.OrphanedReason, "let go of %s without taking the labels off: %v", some(labelled), forbidden)
	}
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

// tellGone notes what was deleted, and by the reason why what was let go of.
func (r *round) tellGone(stage failure.Stage, deleted []string, let map[string][]string) {
	r.out.Notes = fewer(r.out.Notes)
	if stage == StagePrune && len(deleted) > 0 {
		r.out.note(modulesv1.PrunedReason, "removed %s no longer needed: %s", objects(len(deleted)), some(deleted))
	}
	for _, why := range slices.Sorted(maps.Keys(let)) {
		r.out.note(modulesv1.OrphanedReason, "let go of %s, which is not deleted: %s", some(let[why]), why)
	}
}

// goingAgain is when a member that is on its way out is looked at again: the watch tells its end, if there is one.
func (s sight) goingAgain(m *modulesv1.Member) time.Duration {
	if meta, _ := s.state(m); meta != nil && meta.Deleting {
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
	return printable.List(slices.Sorted(slices.Values(names)), maxNamed)
}

// stays is the error of a member that is held.
func stays(ref cluster.Ref, why string) error { return fmt.Errorf("%s stays: %s", describe(ref), why) }

// prunable says that there are leftovers, and that they are to go.
func (r *round) prunable() bool { return r.in.Spec.PruneEnabled() && len(r.leftovers()) > 0 }

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
			for m := range every(data.Members) {
				if !wanted(m) {
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
	for m := range every(r.record.Data.Members) {
		if m.UID == "" {
			continue
		}
		all++
		if wanted(m) {
			continue
		}
		existing++
		if kindOf(m).GroupKind() == definitionKind() {
			if err := removal.mayGo(ctx, m); err != nil {
				failed = append(failed, memberError{refOf(m), err})
			}
		}
	}
	return cmp.Or(r.withinLimit(existing, all), joined(StagePrune, modulesv1.PruneBlockedReason, failed))
}

// withinLimit says why so many may not be removed at once.
func (r *round) withinLimit(existing, all int) error {
	if percent := int(r.in.Spec.GetPruneMaxPercent()); existing*100 > percent*all {
		return failure.At(StagePrune, failure.Retry(modulesv1.PruneBlockedReason, fmt.Errorf(
			"%d of %s would be removed, and prune.maxPercent allows %d %%", existing, objects(all), percent)))
	}
	return nil
}

// mayGo says why a member is held.
func (r *removal) mayGo(ctx context.Context, m *modulesv1.Member) error {
	if err := r.over(ctx); err != nil {
		return err
	}
	found, err := r.look(ctx, refOf(m), func(live metav1.Object) facts { return r.known(m, live) })
	if err == nil && found.fate == held {
		err = stays(found.ref, found.why)
	}
	return err
}
