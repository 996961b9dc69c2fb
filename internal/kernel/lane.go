package kernel

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
)

// laneDelay is how soon an object that found its lane full is looked at again.
const laneDelay = time.Second

// Lane bounds how many workers are busy with objects that are not ready. An upstream that hangs holds a worker until
// the timeout; without the bound, enough of them hold all workers, and everybody waits.
type Lane chan struct{}

// NewLane leaves at least half of the workers to the objects that are ready.
func NewLane(workers int) Lane { return make(Lane, max(1, workers/2)) }

// enter takes a place when one is free.
func (l Lane) enter() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// leave gives the place back.
func (l Lane) leave() { <-l }

// mayPass tells whether the object is reconciled outside of the lane: it is ready, or somebody has acted on it since
// it failed and is waiting for the answer.
func mayPass(obj Object, view View) bool {
	ready := conditions.Get(obj, meta.ReadyCondition)
	if ready == nil {
		return false
	}
	token, requested := meta.ReconcileAnnotationValue(obj.GetAnnotations())
	return conditions.IsReady(obj) || ready.ObservedGeneration != obj.GetGeneration() || requested && token != *view.LastHandledReconcileAt
}
