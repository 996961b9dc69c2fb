package source

import (
	"github.com/fluxcd/pkg/runtime/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
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

// shelled is a kind that knows its shell.
type shelled[O kernel.Object] interface {
	kernel.Kind[O, source.Outcome]
	common() Shared
}

func (k *kind[O]) common() Shared { return k.shared }

// newKernel puts the shell round a kind.
func newKernel[O kernel.Object](k shelled[O]) *kernel.Kernel[O, source.Outcome] {
	return kernel.New(k.common().Shell, k, Finalizer, k.common().Backoff)
}

// newController reconciles objects of the kind when their spec changes, when somebody asks for it, soon after their status
// was forged, and when they are named on rebuild.
func newController[O kernel.Object](mgr ctrl.Manager, k *kind[O], rebuild <-chan event.GenericEvent) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named(k.dir).
		For(k.new(), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		Watches(k.new(), handler.Funcs{UpdateFunc: k.repair}).
		WatchesRawSource(ctrlsource.Channel(rebuild, &handler.EnqueueRequestForObject{})).
		WithOptions(k.shared.ControllerOptions(k.shared.Backoff))
}
