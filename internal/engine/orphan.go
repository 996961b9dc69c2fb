package engine

import (
	"context"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// orphan lets go of all members: nothing on them says any more that they were members. An object that is not this
// installation's, or gone, is let go of already. One that may not be written is let go of with its labels on: nothing is
// asked of it but to stay, and the rights may be gone for good.
func (r *round) orphan(ctx context.Context) (bool, error) {
	removal, err := r.removal(ctx)
	if err != nil {
		return false, failure.At(StageDelete, failure.Retry(modulesv1.DeletionFailedReason, err))
	}
	removal.orphan = true
	return r.settle(ctx, StageDelete, modulesv1.DeletionFailedReason, r.remove(ctx, removal, r.remaining()))
}

// mayLeaveLabels says that a member whose labels may not be taken off is let go of as it is.
func (r *round) mayLeaveLabels() bool { return r.out.Mode == modulesv1.DeletionOrphan || r.lapsed() }
