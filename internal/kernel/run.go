package kernel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/status"
)

// run lets the kind work, and reports what came of it in one write.
func (k *Kernel[O, R]) run(ctx context.Context, req ctrl.Request, obj O) (ctrl.Result, error) {
	if view := k.Kind.View(obj); k.Allowed(view.Timeout) < view.Timeout && *view.ObservedGeneration != obj.GetGeneration() {
		ctrl.LoggerFrom(ctx).Info("spec.timeout is cut to --max-timeout", "timeout", view.Timeout.String(), "maxTimeout", k.MaxTimeout.String())
	}
	before := clone(obj)
	// stored follows the object as the API server has it: an announcement moves it on.
	stored := clone(obj)
	announce := func(ctx context.Context, progress status.Progress) error {
		if failedBefore(before) {
			// Ready stays False until the retry has succeeded: a condition that flaps resets every alert on it.
			return nil
		}
		k.Kind.Table().Progressing(obj, progress)
		if err := k.writeStatus(ctx, stored, obj); err != nil {
			return err
		}
		stored = clone(obj)
		return nil
	}

	result, err := k.work(ctx, func() (R, error) { return k.Kind.Work(ctx, obj, announce) })
	return k.finish(ctx, req, attempt[O, R]{before: before, stored: stored, obj: obj, result: result, err: err})
}

// attempt is one that has ended: the object as it was, as the API server has it now, and as it is to be reported.
type attempt[O Object, R any] struct {
	before, stored, obj O
	result              R
	err                 error
}

// finish reports an attempt in one write, and decides what follows.
func (k *Kernel[O, R]) finish(ctx context.Context, req ctrl.Request, r attempt[O, R]) (ctrl.Result, error) {
	if ctx.Err() != nil {
		// The process is being stopped; what happened now says nothing about the object.
		return ctrl.Result{}, nil
	}
	defer k.tell(k.done(r.obj, r.result))
	if isOwnConflict(r.err) {
		return k.afterWrite(ctx, req, r.err)
	}
	report := k.report(r)
	if err := k.writeStatus(ctx, r.stored, r.obj); err != nil {
		return k.afterWrite(ctx, req, err)
	}
	k.tell(k.Kind.Events(r.before, r.obj, r.result, r.err))
	if owner, ok := k.Kind.(Owner[O, R]); ok {
		if err := owner.Settle(ctx, r.obj, r.result); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cleaning up after the reconcile failed; it is repeated with the next one")
		}
	}
	return k.comeBack(ctx, req, r.obj, report, r.err)
}

// done are the events of what was done, however it is reported.
func (k *Kernel[O, R]) done(obj O, result R) []event.Event {
	if doer, ok := k.Kind.(Doer[O, R]); ok {
		return doer.Done(obj, result)
	}
	return nil
}

func (k *Kernel[O, R]) tell(events []event.Event) {
	for _, e := range events {
		k.Events.Emit(e)
	}
}

// isOwnConflict tells whether a write to the object itself, or to what is kept for it, came too late. A conflict that
// somebody has judged is a failure like others.
func isOwnConflict(err error) bool {
	_, judged := errors.AsType[*failure.Error](err)
	return !judged && apierrors.IsConflict(err)
}

// failedBefore tells whether the object is False about this very generation.
func failedBefore(obj Object) bool {
	ready := conditions.Get(obj, meta.ReadyCondition)
	return conditions.IsFalse(obj, meta.ReadyCondition) && ready.ObservedGeneration == obj.GetGeneration()
}

// work runs a kind's work. A panic ends this run of this object, and nothing else.
func (k *Kernel[O, R]) work(ctx context.Context, do func() (R, error)) (result R, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v", cause), "reconcile panicked", "stack", string(debug.Stack()))
			err = fmt.Errorf("the controller panicked; this is a bug in it, see its log: %v", cause)
		}
	}()
	return do()
}

// report puts the outcome of a run into the object's status.
func (k *Kernel[O, R]) report(r attempt[O, R]) Report {
	obj, err := r.obj, r.err
	table, view := k.Kind.Table(), k.Kind.View(obj)
	report := k.Kind.Report(obj, r.result, err)
	table.State(obj, report.Facts)
	switch {
	case err != nil:
		table.Failed(obj, err, report.Standing)
	case report.Progress != "":
		table.Progressing(obj, status.Progress{Message: report.Progress})
	default:
		table.Succeeded(obj, report.Reason, report.Message, report.Proof)
	}
	// A failure that is going to be retried has not dealt with the generation yet. That of a deletion has: it is the wish
	// to go, and what is in the way of that is known.
	if err == nil || failure.Of(err).Disposition == failure.Stalls || !obj.GetDeletionTimestamp().IsZero() {
		*view.ObservedGeneration = obj.GetGeneration()
	}
	// What was asked for since the run began is not answered by it.
	handled(r.before, view)
	return report
}

// suspend leaves an object alone. It still answers a reconcile request, as Flux does.
func (k *Kernel[O, R]) suspend(ctx context.Context, req ctrl.Request, obj O) (ctrl.Result, error) {
	before := clone(obj)
	view := k.Kind.View(obj)
	k.Kind.Table().Suspended(obj)
	if len(obj.GetConditions()) > 0 {
		*view.ObservedGeneration = obj.GetGeneration()
	}
	handled(obj, view)
	ctrl.LoggerFrom(ctx).V(1).Info("reconciliation is suspended")
	if err := k.writeStatus(ctx, before, obj); err != nil {
		return k.afterWrite(ctx, req, err)
	}
	return ctrl.Result{}, nil
}

// handled copies the reconcile request to status after every attempt, whatever it ended with.
func handled(obj client.Object, view View) {
	if token, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		*view.LastHandledReconcileAt = token
	}
}
