package kernel

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/status"
)

// minInterval is the shortest interval that is kept to. Without it, an interval of zero would mean never, and one of a
// millisecond would keep a worker busy for one object.
const minInterval = time.Second

// run lets the kind work, and reports what came of it in one write.
func (k *Kernel[O, R]) run(ctx context.Context, req ctrl.Request, obj O) (ctrl.Result, error) {
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

	result, err := k.work(ctx, obj, announce)
	if ctx.Err() != nil {
		// The process is being stopped; what happened now says nothing about the object.
		return ctrl.Result{}, nil //nolint:nilerr // The next process takes the object up from the start.
	}
	if apierrors.IsConflict(err) {
		return k.afterWrite(ctx, req, err)
	}

	k.report(obj, result, err)
	if writeErr := k.writeStatus(ctx, stored, obj); writeErr != nil {
		return k.afterWrite(ctx, req, writeErr)
	}
	for _, e := range k.Kind.Events(before, obj, result, err) {
		k.Events.Emit(e)
	}
	if settleErr := k.Kind.Settle(ctx, obj); settleErr != nil {
		ctrl.LoggerFrom(ctx).Error(settleErr, "cleaning up after the reconcile failed; it is repeated with the next one")
	}
	return k.comeBack(ctx, req, obj, err)
}

// failedBefore tells whether the object is False about this very generation.
func failedBefore(obj Object) bool {
	ready := conditions.Get(obj, meta.ReadyCondition)
	return conditions.IsFalse(obj, meta.ReadyCondition) && ready.ObservedGeneration == obj.GetGeneration()
}

// work runs the kind's work. A panic ends this run of this object, and nothing else.
func (k *Kernel[O, R]) work(ctx context.Context, obj O, announce Announce) (result R, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v", cause), "reconcile panicked", "stack", string(debug.Stack()))
			err = fmt.Errorf("the controller panicked; this is a bug in it, see its log: %v", cause)
		}
	}()
	return k.Kind.Work(ctx, obj, announce)
}

// report puts the outcome of a run into the object's status.
func (k *Kernel[O, R]) report(obj O, result R, err error) {
	table, view := k.Kind.Table(), k.Kind.View(obj)
	report := k.Kind.Report(obj, result, err)
	if err == nil {
		table.Succeeded(obj, report.Message, report.Proof)
	} else {
		table.Failed(obj, err, report.Standing)
	}
	// A failure that is going to be retried has not dealt with the generation yet.
	if err == nil || failure.Of(err).Disposition == failure.Stalls {
		*view.ObservedGeneration = obj.GetGeneration()
	}
	handled(obj, view)
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

// comeBack decides when the object is looked at again.
func (k *Kernel[O, R]) comeBack(ctx context.Context, req ctrl.Request, obj O, err error) (ctrl.Result, error) {
	log := ctrl.LoggerFrom(ctx)
	if err == nil {
		return ctrl.Result{RequeueAfter: k.Jitter(max(k.Kind.View(obj).Interval, minInterval))}, nil
	}
	switch f := failure.Of(err); f.Disposition {
	case failure.Stalls:
		log.Error(err, "reconciliation stalled: only an edit of the object helps", "reason", f.Reason)
		return ctrl.Result{}, nil
	case failure.Waits:
		after := f.After
		if after == 0 {
			after = k.RequeueDependency
		}
		log.Info("reconciliation waits for another object", "reason", f.Reason, "cause", err.Error(), "retryAfter", after.String())
		return ctrl.Result{RequeueAfter: after}, nil
	case failure.Retries:
		if f.After > 0 {
			log.Error(err, "reconciliation failed; upstream asks for time", "reason", f.Reason, "retryAfter", f.After.String())
			return k.notBefore(req, f.After), nil
		}
	}
	return ctrl.Result{}, err
}

// notBefore retries with the growing delay of the backoff, but no sooner than upstream has asked for.
func (k *Kernel[O, R]) notBefore(req ctrl.Request, after time.Duration) ctrl.Result {
	delay := max(after, k.Backoff.When(req))
	k.Backoff.hold(req)
	return ctrl.Result{RequeueAfter: delay}
}
