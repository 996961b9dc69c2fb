package engine

import (
	"context"
	"errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// Begun says whether the attempt on record is at exactly the target: the same release, rendered to the same objects with
// the config and variables of now. Nothing is written, and nothing rendered that was before.
func (e *Engine) Begun(ctx context.Context, in Installation) (bool, error) {
	if in.Target == nil {
		return false, failure.At(StageBuild, failure.Stall(modulesv1.BuildFailedReason, errors.New("there is no target to compare with")))
	}
	r, end := e.round(in)
	defer end()
	if err := r.open(ctx); err != nil {
		return false, err
	}
	if r.record == nil || r.record.Data.Attempt == nil {
		return false, nil
	}
	found, err := r.renders.aimAt(ctx, in.Target)
	if err != nil {
		return false, err
	}
	return r.under(found), nil
}
