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
	waiting map[ctrl.Request]*fair.Share
}

// NewTurns shares so many workers. Again puts an object into the controller's queue.
func NewTurns(workers int, again func(ctrl.Request)) *Turns {
	return &Turns{workers: fair.New(int64(workers), 0), again: again, waiting: map[ctrl.Request]*fair.Share{}}
}

// enter gives the object a worker, or lets it wait for its turn.
func (t *Turns) enter(req ctrl.Request, unready bool) (share *fair.Share, entered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[req] == nil {
		t.waiting[req] = t.workers.Ask(fair.Wish{Namespace: req.Namespace, Unready: unready}, func() { t.again(req) })
	}
	if share = t.waiting[req]; !share.Granted() {
		return nil, false
	}
	delete(t.waiting, req)
	return share, true
}

// pass ends the wait of an object that needs no turn.
func (t *Turns) pass(req ctrl.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[req].Release()
	delete(t.waiting, req)
}

// mayPass tells whether the object needs no turn: it is suspended, or somebody has acted on it since it was reported and is
// waiting for the answer. A deletion takes its turn, as it may come with thousands of others.
func mayPass(obj Object, view View) bool {
	ready := conditions.Get(obj, meta.ReadyCondition)
	if !obj.GetDeletionTimestamp().IsZero() {
		return false
	}
	if view.Suspended || ready == nil {
		return view.Suspended
	}
	token, requested := meta.ReconcileAnnotationValue(obj.GetAnnotations())
	return ready.ObservedGeneration != obj.GetGeneration() || requested && token != *view.LastHandledReconcileAt
}
