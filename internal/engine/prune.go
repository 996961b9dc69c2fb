package engine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

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
			if err := removal.mayGo(ctx, m); err != nil {
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
