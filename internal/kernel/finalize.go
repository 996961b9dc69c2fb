package kernel

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

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
	if owner, ok := k.Kind.(Owner[O, R]); ok {
		if err := owner.Finalize(ctx, obj); err != nil {
			return ctrl.Result{}, fmt.Errorf("finalize: %w", err)
		}
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
		k.tell(k.Kind.Events(before, obj, result, nil))
		k.tell(k.done(obj, result))
		return ctrl.Result{}, false, nil
	}
	answer, err := k.finish(ctx, req, attempt[O, R]{before: before, stored: before, obj: obj, result: result, err: err})
	return answer, true, err
}
