package engine

import (
	"context"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// hold leaves the members as they are, because the installation is paused or nothing says how to get their release. It
// goes on watching, and tells how they are.
func (r *round) hold(ctx context.Context) (bool, error) {
	if r.record == nil {
		return false, nil
	}
	r.watch() //nolint:contextcheck // Watches outlive the round that asks for them.
	paused := r.in.Spec.GetManagement() == modulesv1.ManagementPaused
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if meta, known := r.state(m); known && wanted(m) && r.hasDrifted(m, meta) {
			r.out.Drifted = append(r.out.Drifted, Problem{Ref: refOf(m), Message: "is not as it was applied"})
		}
	}
	err := r.judge(ctx)
	if err == nil && !paused && r.held == nil {
		err = r.verdict()
	}
	return false, err
}
