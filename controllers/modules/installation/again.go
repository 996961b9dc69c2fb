package installation

import (
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
)

// again is when the installation has to be looked at even if nothing is heard; 0 leaves it to the interval. The kernel weighs
// it against the interval and against what an error asks for.
func (k *installations) again(obj *modulesv1.ModuleInstallation, r round, err error) time.Duration {
	next := kernel.Sooner(r.outcome.Again, r.planAgain)
	if check := r.decision.NextCheck; !check.IsZero() {
		// The answer changes with that moment; a little later is surely after it.
		next = kernel.Sooner(next, max(check.Sub(k.options.Clock.Now()), 0)+time.Second)
	}
	if r.pending != nil && (r.pending.Reason == modulesv1.ArtifactNotReadyReason || r.pending.Reason == modulesv1.DependencyNotReadyReason) {
		next = kernel.Sooner(next, k.options.RequeueDependency)
	}
	switch {
	case err == nil || failure.Of(err).Disposition != failure.Stalls:
		return next
	case r.inventory == nil:
		return 0
	default:
		// Only an edit helps the request, but what is installed goes on being looked after.
		return kernel.Sooner(next, obj.GetRequeueAfter())
	}
}
