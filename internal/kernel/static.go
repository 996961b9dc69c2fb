package kernel

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// leaveAlone takes from a static object what it had as another one: what it owns, its status, and last the finalizer. One
// that had nothing is not written to, and a suspended one stays as it is.
func (k *Kernel[O, R]) leaveAlone(ctx context.Context, req ctrl.Request, obj O, static Static[O]) (ctrl.Result, error) {
	if k.Kind.View(obj).Suspended {
		return ctrl.Result{}, nil
	}
	before := clone(obj)
	static.Clear(obj)
	if equality.Semantic.DeepEqual(before, obj) && !controllerutil.ContainsFinalizer(obj, k.Finalizer) {
		return ctrl.Result{}, nil
	}
	if owner, ok := k.Kind.(Owner[O, R]); ok {
		if err := owner.Finalize(ctx, obj); err != nil {
			return ctrl.Result{}, fmt.Errorf("finalize: %w", err)
		}
	}
	if err := k.writeStatus(ctx, before, obj); err != nil {
		return k.afterWrite(ctx, req, err)
	}
	k.Backoff.Forget(req)
	k.Durations.Forget(obj)
	before = clone(obj)
	if controllerutil.RemoveFinalizer(obj, k.Finalizer) {
		return k.afterWrite(ctx, req, k.writeMeta(ctx, before, obj, "remove finalizer"))
	}
	return ctrl.Result{}, nil
}
