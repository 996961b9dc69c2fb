// Package wakes brings installations to be looked at: because of what happens to their objects, and of what they wait for.
// It does not know what a look finds.
package wakes

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/engine/watch"
)

// Wakes brings installations to be looked at because something outside of their own object has changed. Whoever calls
// it never waits. Many calls in a row make few rounds.
type Wakes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early are those that were woken before the controller was there.
	early map[types.NamespacedName]struct{}
	// paces has those that were woken lately.
	paces map[types.NamespacedName]*pace
	// judged are the kinds whose health templates tell by expressions.
	judged map[types.NamespacedName]map[schema.GroupVersionKind]struct{}
}

// New returns Wakes that gather until a controller starts with them.
func New() *Wakes {
	return &Wakes{
		early:  map[types.NamespacedName]struct{}{},
		paces:  map[types.NamespacedName]*pace{},
		judged: map[types.NamespacedName]map[schema.GroupVersionKind]struct{}{},
	}
}

// Wake has the installation looked at soon.
func (w *Wakes) Wake(key types.NamespacedName) { w.wake(key, false) }

func (w *Wakes) wake(key types.NamespacedName, drift bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.early[key] = struct{}{}
		return
	}
	p := w.paces[key]
	if p == nil {
		p = &pace{}
		w.paces[key] = p
	}
	now := time.Now()
	if p.hear(now, drift) {
		time.AfterFunc(p.due().Sub(now), func() { w.let(key, p) })
	}
}

// let lets the round go that is due, or waits on: more was heard meanwhile.
func (w *Wakes) let(key types.NamespacedName, p *pace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paces[key] != p || p.first.IsZero() {
		// Another of its timers was first.
		return
	}
	now := time.Now()
	if left := p.due().Sub(now); left > 0 {
		time.AfterFunc(left, func() { w.let(key, p) })
		return
	}
	p.goes(now)
	w.queue.Add(reconcile.Request{NamespacedName: key})
	time.AfterFunc(2*p.distance, func() { w.rest(key, p) })
}

// rest forgets a pace that says nothing any more.
func (w *Wakes) rest(key types.NamespacedName, p *pace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paces[key] == p && p.rested(time.Now()) {
		delete(w.paces, key)
	}
}

// Notify hears from the engine's watcher what became of an object of an installation, which it names namespace/name.
func (w *Wakes) Notify(owner string, ref cluster.Ref, event watch.Event) {
	key, ok := parseOwner(owner)
	if !ok || event == watch.Touched && !w.judges(key, ref.GVK) {
		return
	}
	w.wake(key, event != watch.Touched)
}

// Judge says which kinds of the installation have expressions for their health.
func (w *Wakes) Judge(key types.NamespacedName, expressions ...modulesv1.HealthExpression) {
	kinds := make(map[schema.GroupVersionKind]struct{}, len(expressions))
	for _, expression := range expressions {
		kinds[schema.FromAPIVersionAndKind(expression.APIVersion, expression.Kind)] = struct{}{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(kinds) == 0 {
		delete(w.judged, key)
		return
	}
	w.judged[key] = kinds
}

// judges says whether what others write into an object of the kind has a say in its health.
func (w *Wakes) judges(key types.NamespacedName, kind schema.GroupVersionKind) bool {
	if (&health.Checker{}).NeedsObject(kind) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, judged := w.judged[key][kind]
	return judged
}

// Forget drops what is kept for an installation that is gone.
func (w *Wakes) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.early, key)
	delete(w.paces, key)
	delete(w.judged, key)
}

// Start implements source.Func: from now on the controller's queue takes those that wake.
func (w *Wakes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for key := range maps.Keys(w.early) {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
	clear(w.early)
	return nil
}

// parseOwner reads namespace/name.
func parseOwner(owner string) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(owner, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}
