package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// conflictDelay is how long the cache gets to catch up with a write of ours or of somebody else.
const conflictDelay = 500 * time.Millisecond

// writeStatus sends the difference between the two as one merge patch, bound to the resource version of before.
// Nothing is sent when there is no difference.
func (k *Kernel[O, R]) writeStatus(ctx context.Context, before, after O) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if k.Kind.View(before).Unreadable {
		// A patch against what could not be read would leave it in place.
		if err := k.Client.Status().Update(ctx, after, client.FieldOwner(k.FieldOwner)); err != nil {
			return fmt.Errorf("replace status: %w", err)
		}
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Status().Patch(ctx, after, patch, client.FieldOwner(k.FieldOwner)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// ensureFinalizer puts the finalizer on an object that needs it and lacks it, and takes it off one that has no more need.
func (k *Kernel[O, R]) ensureFinalizer(ctx context.Context, obj O) error {
	if k.Finalizer == "" {
		return nil
	}
	before := clone(obj)
	keep := true
	if keeper, ok := k.Kind.(Keeper[O]); ok {
		var err error
		if keep, err = keeper.Keep(ctx, obj); err != nil {
			return err
		}
	}
	switch {
	case keep && controllerutil.AddFinalizer(obj, k.Finalizer):
		return k.writeMeta(ctx, before, obj, "add finalizer")
	case !keep && controllerutil.RemoveFinalizer(obj, k.Finalizer):
		return k.writeMeta(ctx, before, obj, "remove finalizer")
	}
	return nil
}

// finalize removes what a deleted object owns, then lets it go.
func (k *Kernel[O, R]) finalize(ctx context.Context, req ctrl.Request, obj O) (ctrl.Result, error) {
	k.Durations.Forget(obj)
	if !slices.Contains(obj.GetFinalizers(), k.Finalizer) {
		return ctrl.Result{}, nil
	}
	if dismantler, ok := k.Kind.(Dismantler[O, R]); ok {
		if result, left, err := k.dismantle(ctx, req, obj, dismantler); left {
			return result, err
		}
	}
	if err := k.Kind.Finalize(ctx, obj); err != nil {
		return ctrl.Result{}, fmt.Errorf("finalize: %w", err)
	}
	before := clone(obj)
	controllerutil.RemoveFinalizer(obj, k.Finalizer)
	return k.afterWrite(ctx, req, client.IgnoreNotFound(k.writeMeta(ctx, before, obj, "remove finalizer")))
}

// dismantle removes what a deleted object owns, and reports it as a run for as long as something is left.
func (k *Kernel[O, R]) dismantle(ctx context.Context, req ctrl.Request, obj O, dismantler Dismantler[O, R]) (_ ctrl.Result, left bool, _ error) {
	before := clone(obj)
	result, err := k.work(ctx, func() (R, error) { return dismantler.Dismantle(ctx, obj) })
	if err == nil {
		for _, e := range k.Kind.Events(before, obj, result, nil) {
			k.Events.Emit(e)
		}
		return ctrl.Result{}, false, nil
	}
	answer, err := k.finish(ctx, req, attempt[O, R]{before: before, stored: before, obj: obj, result: result, err: err})
	return answer, true, err
}

func (k *Kernel[O, R]) writeMeta(ctx context.Context, before, after O, what string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Patch(ctx, after, patch, client.FieldOwner(k.FieldOwner)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
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

// clone is a deep copy of the same type.
func clone[O client.Object](obj O) O {
	copied, _ := obj.DeepCopyObject().(O)
	return copied
}
