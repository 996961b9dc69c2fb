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

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/forge"
)

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
	case words == "" || request.Mark == mark:
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
	if w.mirror.Snapshot().RefsLeftOut > 0 {
		return nil // A branch that is not known may be there.
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
