package kernel

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

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
		k.wrote(after)
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Status().Patch(ctx, after, patch, client.FieldOwner(k.FieldOwner)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	k.wrote(after)
	return nil
}

// ensureFinalizer puts the finalizer on an object that lacks it.
func (k *Kernel[O, R]) ensureFinalizer(ctx context.Context, obj O) error {
	before := clone(obj)
	if k.Finalizer == "" || !controllerutil.AddFinalizer(obj, k.Finalizer) {
		return nil
	}
	return k.writeMeta(ctx, before, obj, "add finalizer")
}

func (k *Kernel[O, R]) writeMeta(ctx context.Context, before, after O, what string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Patch(ctx, after, patch, client.FieldOwner(k.FieldOwner)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	k.wrote(after)
	return nil
}

// clone is a deep copy of the same type.
func clone[O client.Object](obj O) O {
	copied, _ := obj.DeepCopyObject().(O)
	return copied
}
