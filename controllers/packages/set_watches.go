package packages

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// countDelay is how long a set waits for more of its variants to report, so that a thousand of them are not a thousand
// writes of its status.
const countDelay = time.Second

// ofVariant has the set of a variant looked at soon.
func (k *sets) ofVariant() handler.EventHandler {
	soon := func(obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		owner := metav1.GetControllerOf(obj)
		if owner != nil && owner.Kind == packagesv1.PackageVariantSetKind {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}}, countDelay)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(e.Object, queue)
		},
	}
}

// ofRepository has all sets of a Repository's namespace looked at: any of them may select it, or no more.
func (k *sets) ofRepository() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, repository client.Object) []reconcile.Request {
		var list packagesv1.PackageVariantSetList
		if err := k.shared.Client.List(ctx, &list, client.InNamespace(repository.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot find the sets of the Repository's namespace; they follow at their interval")
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
}
