package source

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
)

// Shared is what all source controllers work with.
type Shared struct {
	Client   client.Client
	Pipeline *source.Pipeline
	Address  Address
	Events   kernel.Emitter
	// FieldOwner is the field manager of all writes.
	FieldOwner string
	// RequeueDependency is the delay before a missing include is looked for again.
	RequeueDependency time.Duration
	// Jitter spreads the intervals of the objects.
	Jitter    func(time.Duration) time.Duration
	Clock     clock.PassiveClock
	Durations kernel.Durations
	// Workers is how many objects of a kind are reconciled at once.
	Workers int
	// Backoff spreads the retries of objects that fail.
	Backoff *kernel.Backoff
}

// controllerOptions are what all source controllers run with. Objects are taken in the order in which they become
// due: the priority queue would rank what existed at the start behind everything that came later, for ever.
func (s Shared) controllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: s.Workers,
		RateLimiter:             s.Backoff,
		UsePriorityQueue:        new(false),
		RecoverPanic:            new(true),
	}
}

// newKernel puts the shell round a kind.
func newKernel[O kernel.Object](k *kind[O]) *kernel.Kernel[O, source.Outcome] {
	return &kernel.Kernel[O, source.Outcome]{
		Kind:              k,
		Client:            k.shared.Client,
		Finalizer:         Finalizer,
		FieldOwner:        k.shared.FieldOwner,
		RequeueDependency: k.shared.RequeueDependency,
		Jitter:            k.shared.Jitter,
		Clock:             k.shared.Clock,
		Events:            k.shared.Events,
		Durations:         k.shared.Durations,
		Unready:           kernel.NewLane(k.shared.Workers),
		Backoff:           k.shared.Backoff,
	}
}
