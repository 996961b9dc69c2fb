package kernel

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Backoff delays retries exponentially, and keeps an object's delay when the object is only put off. A controller
// forgets the delay of every object that asks to come back at a time of its own; for one that was put off before
// anything was tried, that would undo the backoff just when there is the most to do.
type Backoff struct {
	workqueue.TypedRateLimiter[reconcile.Request]

	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu   sync.Mutex
	held map[reconcile.Request]struct{}
}

// NewBackoff returns a Backoff with the given bounds.
func NewBackoff(shortest, longest time.Duration) *Backoff {
	return &Backoff{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortest, longest),
		held:             map[reconcile.Request]struct{}{},
	}
}

// newQueue makes the controller's queue, when that starts.
func (b *Backoff) newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	b.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name})
	return b.queue
}

// again puts the object into the queue.
func (b *Backoff) again(req reconcile.Request) {
	if b.queue != nil {
		b.queue.Add(req)
	}
}

// hold lets the next Forget of the object pass without effect.
func (b *Backoff) hold(req reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[req] = struct{}{}
}

// Forget implements workqueue.TypedRateLimiter.
func (b *Backoff) Forget(req reconcile.Request) {
	b.mu.Lock()
	_, held := b.held[req]
	delete(b.held, req)
	b.mu.Unlock()
	if !held {
		b.TypedRateLimiter.Forget(req)
	}
}
