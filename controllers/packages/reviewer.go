package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/forge"
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

// boardWork is one look at a board.
type boardWork struct {
	*reviewer

	key    boardKey
	board  *board
	mirror *mirror

	client *forge.Client
	// place is where the client asks.
	place string
	base  string
	began time.Time
	acts  int
}

// isOver tells whether others have their turn before more is done. However slow a forge is, each turn does something.
func (w *boardWork) isOver() bool {
	return w.acts >= actsPerLook || w.acts > 0 && w.shared.Clock.Since(w.began) >= longestTurn
}

// errSuspended says that nobody is to be asked for the time being.
var errSuspended = errors.New("the Repository is suspended")

// settle notes how a look ended. A Repository that is suspended is looked at first when it is so no more, and then the board.
func (w *boardWork) settle(err error) {
	if errors.Is(err, errSuspended) {
		return
	}
	r, b, now := w.shared.reviews, w.board, w.shared.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b.err, b.isLimited = err, errors.Is(err, forge.ErrLimited)
	if len(b.wants) == 0 && r.boards[w.key] == b {
		delete(r.boards, w.key)
		return
	}
	if err == nil {
		b.failures = 0
		if w.isOver() {
			r.waker.wake(w.key.repository)
		}
		return
	}
	b.pause = now.Add(w.delay(b.failures))
	if said, ok := errors.AsType[*forge.Error](err); ok && said.Until.After(now) {
		b.pause = said.Until
	}
	b.failures++
	r.waker.wakeAfter(w.key.repository, b.pause.Sub(now))
}

// delay grows with the failures before.
func (w *boardWork) delay(failures int) time.Duration {
	return min(w.shared.RequeueDependency<<min(failures, 10), longestPause)
}

// work looks at the forge where that is due, and does what is wanted. The error is of the board as a whole.
func (w *boardWork) work(ctx context.Context) error {
	object, err := w.open(ctx)
	if err != nil {
		return err
	}
	r, b := w.shared.reviews, w.board
	r.mu.Lock()
	if b.place != w.place {
		b.moveTo(w.place)
	}
	listing, age, isDue := b.listing, w.shared.Clock.Now().Sub(b.listed), b.isDue
	b.isDue = false
	r.mu.Unlock()
	if isDue || b.listing == nil || age >= min(object.GetRequeueAfter()*9/10, shortestLook) {
		if err := w.within(ctx, func(ctx context.Context) error {
			listing, err = w.client.List(ctx, w.base, listing, isChange)
			return err
		}); err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			b.isDue = true
			return err
		}
		r.mu.Lock()
		b.listing, b.listed = listing, w.shared.Clock.Now()
		r.mu.Unlock()
	}
	for _, variant := range w.variants() {
		if err := w.serve(ctx, variant); err != nil {
			return err
		}
	}
	return w.tidy(ctx)
}

// within bounds what one request to the forge takes.
func (w *boardWork) within(ctx context.Context, ask func(context.Context) error) error {
	const most = 30 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it has not answered in %s", most))
	defer cancel()
	return ask(ctx)
}

// variants are those on the board, in order.
func (w *boardWork) variants() []types.NamespacedName {
	w.shared.reviews.mu.Lock()
	defer w.shared.reviews.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.board.wants), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
}

// serve does what one variant wants. The error is one that the others would come upon as well.
func (w *boardWork) serve(ctx context.Context, variant types.NamespacedName) error {
	r, b, now := w.shared.reviews, w.board, w.shared.Clock.Now()
	isSuspended := w.isSuspended(ctx, variant)
	r.mu.Lock()
	want := b.wants[variant]
	if want != nil {
		want.isPassed = isSuspended
	}
	if want == nil || isSuspended || w.isOver() {
		r.mu.Unlock()
		return nil
	}
	if wait := want.again.Sub(now); wait > 0 {
		r.mu.Unlock()
		r.waker.wakeAfter(w.key.repository, wait)
		return nil
	}
	request := b.find(want)
	isToRead := request != nil && request.State != forge.Open
	act := w.act(want, request)
	if act == nil {
		want.err, want.failures = nil, 0
	}
	r.mu.Unlock()
	if act == nil {
		return nil
	}
	w.acts++
	var made forge.Request
	err := w.within(ctx, func(ctx context.Context) (err error) {
		made, err = act(ctx)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		b.listing = b.listing.With(made)
		if isToRead || w.act(want, b.find(want)) == nil {
			want.err, want.failures = nil, 0
			return nil
		}
		err = fmt.Errorf("request %d is not what was sent: %w", made.Number, forge.ErrAnswer)
	case errors.Is(err, forge.ErrLimited), errors.Is(err, forge.ErrUnavailable), errors.Is(err, forge.ErrLogin):
		return err
	case errors.Is(err, forge.ErrExists):
		b.isDue = true // Somebody has opened it since.
	}
	delay := w.delay(want.failures)
	want.err, want.again = err, now.Add(delay)
	want.failures++
	r.waker.wakeAfter(w.key.repository, delay)
	return nil
}

// isSuspended tells whether nothing is to be done for a variant: what it wants may be from before.
func (w *boardWork) isSuspended(ctx context.Context, variant types.NamespacedName) bool {
	var obj packagesv1.PackageVariant
	return w.shared.Client.Get(ctx, variant, &obj) == nil && obj.Spec.Suspend
}

// act is what is to be done about a want; nil for nothing. It is called with the lock held.
func (w *boardWork) act(want *want, request *forge.Request) func(context.Context) (forge.Request, error) {
	words, title, mark := want.words, want.title, want.mark
	switch {
	case request == nil && words == "":
		return nil
	case request == nil:
		return func(ctx context.Context) (made forge.Request, err error) {
			text, err := forge.Text(mark, words)
			if err != nil {
				return made, err
			}
			return w.client.Begin(ctx, forge.Draft{Head: want.head, Base: w.base, Title: title, Text: text})
		}
	case request.State != forge.Open:
		if request.By != "" || w.board.looked[request.Number] {
			return nil
		}
		w.board.looked[request.Number] = true
		return func(ctx context.Context) (forge.Request, error) { return w.client.Look(ctx, request.Number) }
	case words == "" || request.Mark == mark || want.isVague && request.Mark.Commit == mark.Commit:
		return nil
	}
	if request.Mark == (forge.Mark{}) {
		title = "" // Somebody else has opened it, and named it.
	}
	return func(ctx context.Context) (made forge.Request, err error) {
		text, err := forge.Text(mark, words)
		if err != nil {
			return made, err
		}
		return w.client.Edit(ctx, request.Number, forge.Edit{Title: title, Text: text})
	}
}

// tidy closes requests whose branch is gone, where the forge has not done so itself.
func (w *boardWork) tidy(ctx context.Context) error {
	for _, request := range w.orphans() {
		if w.isOver() {
			break
		}
		w.acts++
		var closed forge.Request
		if err := w.within(ctx, func(ctx context.Context) (err error) {
			closed, err = w.client.Edit(ctx, request.Number, forge.Edit{State: forge.Closed})
			return err
		}); err != nil {
			return err
		}
		w.shared.reviews.mu.Lock()
		w.board.listing = w.board.listing.With(closed)
		delete(w.board.left, request.Head)
		w.shared.reviews.mu.Unlock()
	}
	return nil
}

// orphans are the requests of branches that changes on the board had, and that the repository has no more.
func (w *boardWork) orphans() (found []forge.Request) {
	w.shared.reviews.mu.Lock()
	defer w.shared.reviews.mu.Unlock()
	if len(w.board.left) == 0 {
		return nil
	}
	refs := w.mirror.Snapshot().Refs // As it is now: what was asked for in this look has its branch there.
	for head, owner := range w.board.left {
		if _, isThere := refs["refs/heads/"+head]; isThere {
			continue
		}
		at := slices.IndexFunc(w.board.listing.Requests, func(r forge.Request) bool {
			return r.Head == head && r.State == forge.Open && r.Mark.Owner == owner
		})
		if at < 0 {
			delete(w.board.left, head)
		} else {
			found = append(found, w.board.listing.Requests[at])
		}
	}
	return found
}

// open finds out how to reach the forge.
func (w *boardWork) open(ctx context.Context) (*packagesv1.Repository, error) {
	var object packagesv1.Repository
	if err := w.shared.Client.Get(ctx, w.key.repository, &object); err != nil {
		return nil, fmt.Errorf("get Repository %s: %w", w.key.repository.Name, err)
	}
	if object.Spec.Suspend {
		return nil, errSuspended
	}
	w.base = object.Spec.GetBranch()
	options, place, err := w.credential(ctx, &object)
	if err != nil {
		return nil, failure.Wait(packagesv1.ReviewFailedReason, 0, fmt.Errorf("spec.approval.review: %w", err))
	}
	w.client, w.place = forge.New(place, options), fmt.Sprint(place.Endpoint, " ", place.Repository)
	return &object, nil
}
