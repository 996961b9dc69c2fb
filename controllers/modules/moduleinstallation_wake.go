package modules

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// wakeDelay gathers what happens in a row: one apply moves several objects, and each of them tells.
const wakeDelay = 100 * time.Millisecond

// Wakes brings installations to be looked at because something outside of their own object has changed. Whoever calls
// it never waits, and many calls in a row make one round.
type Wakes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early are those that were woken before the controller was there.
	early map[types.NamespacedName]struct{}
}

// NewWakes returns Wakes that gather until a controller starts with them.
func NewWakes() *Wakes { return &Wakes{early: map[types.NamespacedName]struct{}{}} }

// Wake has the installation looked at soon.
func (w *Wakes) Wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.early[key] = struct{}{}
		return
	}
	w.queue.AddAfter(reconcile.Request{NamespacedName: key}, wakeDelay)
}

// WakeOwner is Wake for the name that the engine has for an installation: namespace/name.
func (w *Wakes) WakeOwner(owner string) {
	if key, ok := parseOwner(owner); ok {
		w.Wake(key)
	}
}

// start implements source.Func: from now on the controller's queue takes those that wake.
func (w *Wakes) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for key := range maps.Keys(w.early) {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
	w.early = nil
	return nil
}
