package kernel

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Shell is what the controllers of all kinds work with.
type Shell struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Reader reads past the cache, as the controller itself.
	Reader client.Reader
	Events Emitter
	// FieldOwner is the field manager of all writes to our own kinds, and to what is made for them.
	FieldOwner string
	// RequeueDependency is the delay after a failure.Wait that names none, should no watch tell of what is missing.
	RequeueDependency time.Duration
	// Jitter spreads the intervals of the objects.
	Jitter    func(time.Duration) time.Duration
	Clock     clock.PassiveClock
	Durations Durations
	// MaxTimeout is the operator's ceiling on every spec.timeout; zero means none.
	MaxTimeout time.Duration
	// Workers is how many objects of a kind are reconciled at once.
	Workers int
}

// Allowed is what an object gets of the timeout that its spec asks for.
func (s Shell) Allowed(asked time.Duration) time.Duration {
	if s.MaxTimeout > 0 {
		return min(asked, s.MaxTimeout)
	}
	return asked
}

// New puts the shell round a kind. Each kind has a backoff of its own, as objects of two kinds share names.
func New[O Object, R any](s Shell, kind Kind[O, R], finalizer string, backoff *Backoff) *Kernel[O, R] {
	return &Kernel[O, R]{Shell: s, Kind: kind, Finalizer: finalizer, Turns: NewTurns(s.Workers, backoff.again), Backoff: backoff}
}

// ControllerOptions are what all controllers run with. Objects are taken in the order in which they become due: the
// priority queue would rank what existed at the start behind everything that came later, for ever.
func (s Shell) ControllerOptions(backoff *Backoff) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: s.Workers,
		RateLimiter:             backoff,
		NewQueue:                backoff.newQueue,
		RecoverPanic:            new(true),
	}
}
