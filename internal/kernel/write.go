package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// statusTries bounds how often one status is written, while somebody goes on touching the object.
const statusTries = 5

// writeStatus sends the difference between the two as one merge patch, bound to the resource version of before.
// Nothing is sent when there is no difference. An object that was only touched meanwhile, say by who asks for a reconcile,
// takes the status all the same: were it looked at again instead, who asks all the time would keep it from being reported.
func (k *Kernel[O, R]) writeStatus(ctx context.Context, before, after O) error {
	if rider, ok := k.Kind.(Rider[O]); ok {
		rider.Ride(before, after)
	}
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	err := k.sendStatus(ctx, before, after)
	for tries := 1; apierrors.IsConflict(err) && tries < statusTries; tries++ {
		version, readErr := k.touched(ctx, before)
		if version == "" {
			return cmp.Or(readErr, err)
		}
		before.SetResourceVersion(version)
		after.SetResourceVersion(version)
		err = k.sendStatus(ctx, before, after)
	}
	if err == nil {
		k.wrote(after)
	}
	return err
}

func (k *Kernel[O, R]) sendStatus(ctx context.Context, before, after O) error {
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

// touched is the version that the object has now, if nothing but its metadata has changed since before; else empty. A
// deletion is a new generation, too. A status that somebody else has written may say what the report has to take account of.
func (k *Kernel[O, R]) touched(ctx context.Context, before O) (version string, err error) {
	now := k.Kind.New()
	if err := k.Reader.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return "", fmt.Errorf("read past the cache: %w", err)
	}
	var changed struct{ Status json.RawMessage }
	text, err := client.MergeFrom(before).Data(now)
	if err := cmp.Or(err, json.Unmarshal(text, &changed)); err != nil {
		return "", fmt.Errorf("compare status: %w", err)
	}
	if now.GetUID() != before.GetUID() || now.GetGeneration() != before.GetGeneration() || changed.Status != nil {
		return "", nil
	}
	return now.GetResourceVersion(), nil
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
