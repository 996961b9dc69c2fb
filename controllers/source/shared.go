package source

import (
	"github.com/fluxcd/pkg/runtime/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
)

// Shared is what all source controllers work with.
type Shared struct {
	kernel.Shell

	Pipeline *source.Pipeline
	Address  Address
	// Backoff spreads the retries of objects that fail.
	Backoff *kernel.Backoff
}

// newKernel puts the shell round a kind.
func newKernel[O kernel.Object](k *kind[O]) *kernel.Kernel[O, source.Outcome] {
	return kernel.New(k.shared.Shell, k, Finalizer, k.shared.Backoff)
}

// controller reconciles objects of the type when their spec changes, when somebody asks for it, and when they are named on
// rebuild.
func (s Shared) controller(mgr ctrl.Manager, name string, of client.Object, rebuild <-chan event.GenericEvent) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(of, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		WatchesRawSource(ctrlsource.Channel(rebuild, &handler.EnqueueRequestForObject{})).
		WithOptions(s.ControllerOptions(s.Backoff))
}
