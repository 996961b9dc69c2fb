// Package modules holds the controllers of the module kinds: the catalogues that releases are chosen from, what
// templates and modules report of themselves, and the installations.
// It does not know how a release is chosen, nor how one is put into the cluster.
package modules

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sluice.dev/sluice/internal/kernel"
)

// Shared is what all controllers of modules work with.
type Shared struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Catalogue is where releases are chosen from.
	Catalogue *Catalogue
	Events    kernel.Emitter
	// FieldOwner is the field manager of all writes to our own kinds, and to the sources that templates own.
	FieldOwner string
	// RequeueDependency is the delay before something missing is looked for again, should no watch tell of it.
	RequeueDependency time.Duration
	// Jitter spreads the intervals of the objects.
	Jitter    func(time.Duration) time.Duration
	Clock     clock.PassiveClock
	Durations kernel.Durations
	// Workers is how many objects of a kind are reconciled at once.
	Workers int
}

// controllerOptions are what all controllers of modules run with. Objects are taken in the order in which they become
// due: the priority queue would rank what existed at the start behind everything that came later, for ever.
func (s Shared) controllerOptions(backoff *kernel.Backoff) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: s.Workers,
		RateLimiter:             backoff,
		UsePriorityQueue:        new(false),
		RecoverPanic:            new(true),
	}
}

// newKernel puts the shell round a kind. Each kind has a backoff of its own, as objects of two kinds share names.
func newKernel[O kernel.Object, R any](s Shared, kind kernel.Kind[O, R], finalizer string, backoff *kernel.Backoff) *kernel.Kernel[O, R] {
	return &kernel.Kernel[O, R]{
		Kind:              kind,
		Client:            s.Client,
		Finalizer:         finalizer,
		FieldOwner:        s.FieldOwner,
		RequeueDependency: s.RequeueDependency,
		Jitter:            s.Jitter,
		Clock:             s.Clock,
		Events:            s.Events,
		Durations:         s.Durations,
		Unready:           kernel.NewLane(s.Workers),
		Backoff:           backoff,
	}
}
