// Package kernel is the shell round every kind of object: get, finalise, suspend, run, report, patch, and decide
// when to come back. It is the only place that makes a ctrl.Result.
// It does not know what any kind does; a kind brings its Kind.
package kernel

import (
	"context"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/status"
)

// Object is an API object with conditions.
type Object interface {
	client.Object
	conditions.Setter
}

// View gives the kernel the fields that every kind has, each in its own place.
type View struct {
	Suspended bool
	// Interval is the time between two runs that find nothing wrong.
	Interval time.Duration
	// RetryInterval is the time until a run that failed is repeated; zero means growing delays.
	RetryInterval time.Duration
	// Timeout is what spec.timeout asks for; zero for a kind that has none.
	Timeout time.Duration
	// Unreadable says that the status could not be decoded: it is replaced as a whole.
	Unreadable bool
	// ObservedGeneration and LastHandledReconcileAt point into the object's status.
	ObservedGeneration     *int64
	LastHandledReconcileAt *string
}

// Announce tells the API server that work on a change has begun. It is called at most once a run, before anything
// large is fetched; its error ends the run.
type Announce func(context.Context, status.Progress) error

// Report is what a kind says of its product after a run.
type Report struct {
	// Standing is what there is, for a run that failed.
	Standing status.Standing
	// Reason and Message are those of success; an empty reason is Succeeded.
	Reason, Message string
	// Proof says what was verified; empty when the spec asks for no proof.
	Proof string
	// Facts are the conditions that the kind states of itself, after a failure too.
	Facts []status.Fact
	// Progress says what is still going on after a run that did not fail; empty when it is finished.
	Progress string
	// Again is when the object has to be looked at again, if that is sooner than its interval, than the time after which a
	// failure is retried or a wait is over, or although it is stalled; zero means that it has not.
	Again time.Duration
}

// Kind is what one kind of object brings. R is what its work ends with.
type Kind[O Object, R any] interface {
	// New returns an empty object.
	New() O
	// View gives the common fields of obj.
	View(obj O) View
	// Table says which conditions report what.
	Table() status.Table
	// Work does the kind's work for one object. It leaves obj alone.
	Work(ctx context.Context, obj O, announce Announce) (R, error)
	// Report writes the result into those status fields of obj that are the kind's own. It is called after a
	// failure too.
	Report(obj O, result R, err error) Report
	// Events returns what is worth telling about a run, once its status is written.
	Events(before, after O, result R, err error) []event.Event
}

// Owner is a kind whose objects own something outside the API server.
type Owner[O Object, R any] interface {
	// Settle runs after the status was written; say, to collect what is no longer referenced.
	Settle(ctx context.Context, obj O, result R) error
	// Finalize removes what obj owns. It may be called again after it succeeded.
	Finalize(ctx context.Context, obj O) error
}

// Dismantler is a kind whose objects own what takes more than one run to remove. A run is reported as one of Work is.
type Dismantler[O Object, R any] interface {
	// Dismantle removes what obj owns, and leaves obj alone. Its error says why something is left, and when it is called
	// again; without one, Finalize follows and the object goes.
	Dismantle(ctx context.Context, obj O) (R, error)
}

// Static is a kind some of whose objects only lend their spec to others: no work is done for these, and nothing is written to
// them.
type Static[O Object] interface {
	// Static tells whether obj is such an object now. It may have been another one before.
	Static(obj O) bool
	// Clear takes out of obj's status what was written while it was another one.
	Clear(obj O)
}

// Forgetter is a kind that keeps something in memory for each object.
type Forgetter interface {
	// Forget drops it. It is called for every object that is gone, however it went.
	Forget(key client.ObjectKey)
}

// Rider is a kind with fields in its status that change too often to be written for their own sake.
type Rider[O Object] interface {
	// Ride leaves in after what before has in those fields, if nothing else differs.
	Ride(before, after O)
}

// Doer is a kind whose work has effects beside the object: they stay done where the run cannot be reported, and the run that
// is reported in the end does not do them again.
type Doer[O Object, R any] interface {
	// Done returns what is worth telling about the effects, whether or not the status was written. Events leaves them out.
	Done(obj O, result R) []event.Event
}

// Emitter takes events without ever blocking.
type Emitter interface {
	Emit(e event.Event)
}

// Durations records how long reconciles take.
type Durations interface {
	Observe(obj client.Object, took time.Duration)
	Forget(obj client.Object)
}

// Kernel reconciles the objects of one kind.
type Kernel[O Object, R any] struct {
	Shell

	Kind Kind[O, R]
	// Finalizer is put on every object before any work is done for it; empty, on none.
	Finalizer string
	// Turns share the workers.
	Turns *Turns
	// Backoff is the rate limiter of the controller.
	Backoff *Backoff

	// marks are what our writes made of objects, until the cache shows it.
	marks sync.Map
}

// Reconcile takes one object from whatever state it is in towards what its spec says.
func (k *Kernel[O, R]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	start := k.Clock.Now()
	obj := k.Kind.New()
	if err := k.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		obj.SetNamespace(req.Namespace)
		obj.SetName(req.Name)
		k.Durations.Forget(obj)
		k.Turns.pass(req)
		k.marks.Delete(req.NamespacedName)
		if forgetter, ok := k.Kind.(Forgetter); ok && apierrors.IsNotFound(err) {
			forgetter.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if view := k.Kind.View(obj); mayPass(obj, view) {
		k.Turns.pass(req)
	} else {
		share, entered := k.Turns.Enter(req, wishOf(obj, view))
		if !entered {
			k.Backoff.hold(req)
			return ctrl.Result{}, nil
		}
		defer share.Release()
	}
	if k.behind(obj) {
		return k.putOff(req, conflictDelay), nil
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return k.finalize(ctx, req, obj)
	}
	if static, ok := k.Kind.(Static[O]); ok && static.Static(obj) {
		return k.leaveAlone(ctx, req, obj, static)
	}
	defer func() { k.Durations.Observe(obj, k.Clock.Since(start)) }()

	if err := k.ensureFinalizer(ctx, obj); err != nil {
		return k.afterWrite(ctx, req, err)
	}
	if k.Kind.View(obj).Suspended {
		return k.suspend(ctx, req, obj)
	}
	return k.run(ctx, req, obj)
}
