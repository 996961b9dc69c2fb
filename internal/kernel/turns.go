package kernel

import (
	"sync"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/internal/fair"
)

// Turns share the workers of a controller among the namespaces. No worker waits for a turn: the object is looked at again
// once it has come.
type Turns struct {
	workers *fair.Pool
	again   func(ctrl.Request)

	mu      sync.Mutex
	waiting map[ctrl.Request]place
}

// place is what an object has asked for, and got.
type place struct {
	*fair.Share
	wish fair.Wish
}

// NewTurns shares so many workers. Again puts an object into the controller's queue.
func NewTurns(workers int, again func(ctrl.Request)) *Turns {
	return &Turns{workers: fair.New(int64(workers), 0), again: again, waiting: map[ctrl.Request]place{}}
}

// Enter gives the object a worker, or lets it wait for its turn.
func (t *Turns) Enter(req ctrl.Request, wish fair.Wish) (share *fair.Share, entered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, waits := t.waiting[req]
	if !waits || at.wish != wish && !at.Granted() {
		at.Release()
		at = place{t.workers.Ask(wish, func() { t.again(req) }), wish}
		t.waiting[req] = at
	}
	if !at.Granted() {
		return nil, false
	}
	delete(t.waiting, req)
	return at.Share, true
}

// pass ends the wait of an object that needs no turn.
func (t *Turns) pass(req ctrl.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[req].Release()
	delete(t.waiting, req)
}

// mayPass tells whether the object needs no turn: it is suspended. A deletion takes its turn, as it may come with thousands
// of others.
func mayPass(obj Object, view View) bool {
	return view.Suspended && obj.GetDeletionTimestamp().IsZero()
}

// wishOf is the wish for a worker. Where somebody has acted on the object since it was reported, and waits for the answer, it
// counts like one that is ready, and waits for none that were not acted on. It is its namespace's still: edits can be made
// by the thousand as well.
func wishOf(obj Object, view View) fair.Wish {
	wish := fair.Wish{Namespace: obj.GetNamespace(), Unready: !conditions.IsReady(obj)}
	ready := conditions.Get(obj, meta.ReadyCondition)
	if ready == nil || !obj.GetDeletionTimestamp().IsZero() {
		return wish
	}
	token, requested := meta.ReconcileAnnotationValue(obj.GetAnnotations())
	if ready.ObservedGeneration != obj.GetGeneration() || requested && token != *view.LastHandledReconcileAt {
		wish.Unready, wish.Urgent = false, true
	}
	return wish
}
