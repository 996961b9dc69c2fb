package engine

import (
	"context"
	"errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// orphan lets go of all members: nothing on them says any more that they were members. An object that is not this
// installation's, or gone, is let go of already. One that cannot be written, for want of rights or because its kind is not
// served, is let go of with its labels on once that has lasted: nothing is asked of it but to stay.
func (r *round) orphan(ctx context.Context) (bool, error) {
	removal, err := r.removal(ctx)
	if err != nil {
		return false, failure.At(StageDelete, failure.Retry(modulesv1.DeletionFailedReason, err))
	}
	removal.orphan = true
	return r.settle(ctx, StageDelete, modulesv1.DeletionFailedReason, r.remove(ctx, removal, r.remaining()))
}

// isOutOfReach says that a deletion can do nothing about an object, by the error, for as long as nobody grants rights, or
// brings its kind back where it only has to let go.
func (r *round) isOutOfReach(err error) bool {
	return r.in.Deleting && (errors.Is(err, cluster.ErrForbidden) || errors.Is(err, cluster.ErrNoKind) && r.out.Mode == modulesv1.DeletionOrphan)
}
