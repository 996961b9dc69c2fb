package source

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/storage"
)

// repairDelay is how soon a forged status is put right. Two processes that work on the same object by mistake correct each
// other no faster.
const repairDelay = 5 * time.Second

// repair has an object looked at again when a write has made its status name another artifact than the stored one. Our own
// writes name what was stored before them.
func (k *kind[O]) repair(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	before, _ := e.ObjectOld.(O)
	after, _ := e.ObjectNew.(O)
	if !k.nameSame(before, after) && !k.namesStored(ctx, after) {
		queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)}, repairDelay)
	}
}

// nameSame tells whether the status of both names the same artifact.
func (k *kind[O]) nameSame(a, b O) bool {
	one, other := k.fields(a), k.fields(b)
	latest := one.latest == nil || *one.latest == *other.latest
	return latest && *one.checksum == *other.checksum && equality.Semantic.DeepEqual(*one.artifact, *other.artifact)
}

// namesStored tells whether status is what a report would make of it now. Where the storage gives no answer, it is.
func (k *kind[O]) namesStored(ctx context.Context, obj O) bool {
	record, err := k.shared.Pipeline.Store.Record(ctx, k.object(obj))
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged), err == nil && record.UID != string(obj.GetUID()):
		record = storage.Record{}
	case err != nil:
		return true
	}
	reported, _ := obj.DeepCopyObject().(O)
	k.publish(reported, k.fields(reported), record)
	return k.nameSame(obj, reported)
}
