package packages

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// waker brings the objects of one kind to be looked at because of what is in memory alone. Whoever calls it never waits.
type waker struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early are those that were woken before the controller was there.
	early map[types.NamespacedName]struct{}
}

func newWaker() *waker { return &waker{early: map[types.NamespacedName]struct{}{}} }

// wake has an object looked at, once for many calls.
func (w *waker) wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.early[key] = struct{}{}
		return
	}
	w.queue.Add(reconcile.Request{NamespacedName: key})
}

// wakeAfter has an object looked at after a while. Of several calls that is the first one that is due: whoever looks at the object
// says then what is left to wait for.
func (w *waker) wakeAfter(key types.NamespacedName, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.early[key] = struct{}{}
		return
	}
	w.queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
}

// Start implements source.Func: from now on the controller's queue takes those that are woken.
func (w *waker) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for key := range w.early {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
	w.early = nil
	return nil
}
