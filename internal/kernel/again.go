package kernel

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/internal/failure"
)

// minInterval is the shortest interval that is kept to. Without it, an interval of zero would mean never, and one of a
// millisecond would keep a worker busy for one object.
const minInterval = time.Second

// conflictDelay is how long the cache gets to catch up with a write of ours or of somebody else.
const conflictDelay = 500 * time.Millisecond

// comeBack decides when the object is looked at again.
func (k *Kernel[O, R]) comeBack(ctx context.Context, req ctrl.Request, obj O, report Report, err error) (ctrl.Result, error) {
	log, view := ctrl.LoggerFrom(ctx), k.Kind.View(obj)
	if err == nil {
		after := Sooner(report.Again, k.Jitter(max(view.Interval, minInterval)))
		return ctrl.Result{RequeueAfter: after}, nil
	}
	switch f := failure.Of(err); f.Disposition {
	case failure.Stalls:
		log.Error(err, "reconciliation stalled: only an edit of the object helps", "reason", f.Reason)
		return ctrl.Result{RequeueAfter: report.Again}, nil
	case failure.Waits:
		after := Sooner(report.Again, cmp.Or(f.After, k.RequeueDependency))
		log.Info("reconciliation waits for another object", "reason", f.Reason, "cause", err.Error(), "retryAfter", after.String())
		return ctrl.Result{RequeueAfter: after}, nil
	case failure.Retries:
		if f.After == 0 && view.RetryInterval == 0 {
			return ctrl.Result{}, err
		}
		after := k.retry(req, view, report, f.After)
		log.Error(err, "reconciliation failed", "reason", f.Reason, "retryAfter", after.String())
		return ctrl.Result{RequeueAfter: after}, nil
	}
	return ctrl.Result{}, err
}

// retry is the time until a failure is tried again: the object's own, or else one that grows with each, and never sooner than
// whoever failed has asked for.
func (k *Kernel[O, R]) retry(req ctrl.Request, view View, report Report, asked time.Duration) time.Duration {
	if view.RetryInterval > 0 {
		return max(asked, Sooner(report.Again, k.Jitter(max(view.RetryInterval, minInterval))))
	}
	growing := k.Backoff.When(req)
	k.Backoff.hold(req)
	return max(asked, growing)
}

// putOff looks at an object again soon. Nothing was tried, so that its backoff stays as it is.
func (k *Kernel[O, R]) putOff(req ctrl.Request, after time.Duration) ctrl.Result {
	k.Backoff.hold(req)
	return ctrl.Result{RequeueAfter: k.Jitter(after)}
}

// afterWrite answers a write that ended the run. A conflict means that the object moved on: it is looked at again
// soon. An object that is gone needs nothing. When the API server does not take the write, it is tried again after a
// fixed time: an outage of the API server must not push the objects' own retries out.
func (k *Kernel[O, R]) afterWrite(ctx context.Context, req ctrl.Request, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		ctrl.LoggerFrom(ctx).V(1).Info("object has changed meanwhile", "cause", err.Error())
		return k.putOff(req, conflictDelay), nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return ctrl.Result{}, err
	default:
		ctrl.LoggerFrom(ctx).Error(err, "the API server did not take a write", "retryAfter", k.RequeueDependency.String())
		return k.putOff(req, k.RequeueDependency), nil
	}
}

// Sooner is the sooner of two times; zero is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
