package packages

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/kernel"
)

const (
	// boardsAtOnce is how many repositories have their forges asked at the same time, by turns of the namespaces: those of one hold up
	// no other. longestTurn is after how long a turn is over that has done something.
	boardsAtOnce = 4
	longestTurn  = 30 * time.Second
	// shortestLook is how long a listing is good for where something is done to the repository again and again.
	shortestLook = 10 * time.Second
	// actsPerLook is how many requests are made or changed before others have their turn.
	actsPerLook = 20
	// longestPause bounds the growing delays of a forge that does not answer.
	longestPause = 10 * time.Minute
)

// reviewer asks forges for what variants want.
type reviewer struct {
	shared Shared
	turns  *kernel.Turns
}

func newReviewer(shared Shared) *reviewer {
	return &reviewer{shared, kernel.NewTurns(boardsAtOnce, func(request ctrl.Request) { shared.reviews.waker.wake(request.NamespacedName) })}
}

// setupReviewer adds the controller of reviews to the manager. It has no objects of its own: what it is to do is in memory.
func setupReviewer(mgr ctrl.Manager, shared Shared, _ *kernel.Backoff) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("packagereview").
		WatchesRawSource(ctrlsource.Func(shared.reviews.waker.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: boardsAtOnce}).
		Complete(newReviewer(shared))
}

// Reconcile implements reconcile.Reconciler: it looks at the boards of a repository.
func (k *reviewer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r := k.shared.reviews
	share, entered := k.turns.Enter(request, fair.Wish{Namespace: request.Namespace, Unready: r.fails(request.NamespacedName)})
	if !entered {
		return reconcile.Result{}, nil
	}
	defer share.Release()
	began := k.shared.Clock.Now()
	for _, key := range r.keys(request.NamespacedName) {
		if k.shared.Clock.Since(began) >= longestTurn {
			r.waker.wake(request.NamespacedName)
			break
		}
		k.look(ctx, key)
	}
	return reconcile.Result{}, nil
}

// keys are those of a repository's boards.
func (r *reviews) keys(repository types.NamespacedName) (keys []boardKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.boards {
		if key.repository == repository {
			keys = append(keys, key)
		}
	}
	return keys
}

// fails tells whether a forge of the repository did not answer the last time.
func (r *reviews) fails(repository types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, b := range r.boards {
		if key.repository == repository && b.failures > 0 {
			return true
		}
	}
	return false
}

// look brings a board up to date, and has the variants looked at for which something has changed.
func (k *reviewer) look(ctx context.Context, key boardKey) {
	now := k.shared.Clock.Now()
	r := k.shared.reviews
	r.mu.Lock()
	b := r.boards[key]
	if b == nil {
		r.mu.Unlock()
		return
	}
	pause := b.pause
	r.mu.Unlock()
	if wait := pause.Sub(now); wait > 0 {
		r.waker.wakeAfter(key.repository, wait)
		return
	}
	before := k.news(b)
	m := k.shared.mirrors.get(key.repository)
	if m == nil {
		return // The repository is looked at first, and then the board.
	}
	w := &boardWork{reviewer: k, key: key, board: b, mirror: m, began: now}
	w.settle(w.work(ctx))
	for variant, said := range k.news(b) {
		if before[variant] != said {
			k.shared.WakeVariant(variant)
		}
	}
}

// news is what the board tells each variant.
func (k *reviewer) news(b *board) map[types.NamespacedName]string {
	r := k.shared.reviews
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[types.NamespacedName]string{}
	for variant, w := range b.wants {
		request := b.find(w)
		said := fmt.Sprint(b.listing != nil, b.err, w.err, request != nil)
		if request != nil {
			said += fmt.Sprint(request.Number, request.State, request.By, request.URL)
		}
		all[variant] = said
	}
	return all
}
