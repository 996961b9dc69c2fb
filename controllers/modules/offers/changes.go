package offers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is what a controller works off.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Changes is a handler that sees an object before and after each change; nil is one that was not there, or is no more.
// What exists when the process starts is no change. Requests are added after the delay, so that those for one object
// within it become one.
func Changes[T client.Object](delay time.Duration, affected func(ctx context.Context, before, after T) []reconcile.Request) handler.EventHandler {
	var none T
	enqueue := func(ctx context.Context, before, after T, q queue) {
		for _, request := range affected(ctx, before, after) {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if obj, ok := e.Object.(T); ok && !e.IsInInitialList {
				enqueue(ctx, none, obj, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, was := e.ObjectOld.(T)
			after, is := e.ObjectNew.(T)
			if was && is {
				enqueue(ctx, before, after, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if obj, ok := e.Object.(T); ok {
				enqueue(ctx, obj, none, q)
			}
		},
	}
}

// Requests are for the names, in their order.
func Requests(names map[types.NamespacedName]struct{}) []reconcile.Request {
	found := make([]reconcile.Request, 0, len(names))
	order := func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), order) {
		found = append(found, reconcile.Request{NamespacedName: name})
	}
	return found
}
