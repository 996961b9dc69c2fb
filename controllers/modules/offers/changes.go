package offers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Names are of objects of one kind.
type Names = sets.Set[types.NamespacedName]

// queue is what a controller works off.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Changes is a handler that sees an object before and after each change; nil is one that was not there, or is no more.
// What exists when the process starts is no change. Those affected are looked at after the delay, once for all changes
// within it.
func Changes[T client.Object](delay time.Duration, affected func(ctx context.Context, before, after T) Names) handler.EventHandler {
	var none T
	enqueue := func(ctx context.Context, before, after T, q queue) {
		for name := range affected(ctx, before, after) {
			q.AddAfter(reconcile.Request{NamespacedName: name}, delay)
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
