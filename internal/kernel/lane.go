package kernel

import "time"

// laneDelay is how soon an object that found its lane full is looked at again.
const laneDelay = time.Second

// Lane bounds how many workers are busy with objects that failed the last time. An upstream that hangs holds a worker
// until the timeout; without the bound, enough of them hold all workers, and everybody waits.
type Lane chan struct{}

// NewLane leaves at least half of the workers to the objects that work.
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
