// Package memory bounds what everything sizeable in a process takes together. Whoever is about to allocate much draws the
// bytes first, from the account of the work that it is part of.
// It does not know what the bytes are for.
//
// Nobody waits while holding something: work that comes upon too little stops, gives everything back, waits until there
// is what it needs, and begins anew.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sluice.dev/sluice/internal/fair"
)

const (
	// least is what every account has from its beginning: enough for most work.
	least = 2 << 20
	// step is how many bytes an account grows by at least.
	step = 1 << 20
)

// ErrBudget says that work needs more memory than one namespace may have.
var ErrBudget = errors.New("not enough memory")

// shortage says that others have what work needs.
type shortage struct{ need int64 }

// Error tells whoever does not begin anew.
func (s *shortage) Error() string {
	return fmt.Sprintf("%d bytes of memory are needed, and others have them", s.need)
}

// Budget is so many bytes. A nil Budget has no bound.
type Budget struct {
	total int64
	pool  *fair.Pool
}

// New returns a budget.
func New(total int64) *Budget { return &Budget{total: total, pool: fair.New(total, 0)} }

// Do runs work that draws from the context it gets, once it is its turn. Work that comes upon a shortage is run again from its
// beginning, when there is what it asked for. The error is work's own, or the cause of the context's end while it waits.
func (b *Budget) Do(ctx context.Context, wish fair.Wish, work func(context.Context) error) error {
	if b == nil {
		return work(ctx)
	}
	for wish.Weight = min(least, b.most(wish)); ; {
		err := b.attempt(ctx, wish, work)
		short, ok := errors.AsType[*shortage](err)
		if !ok {
			return err
		}
		// Twice as much each time, so that this comes to an end.
		wish.Weight = min(max(short.need, 2*wish.Weight), b.most(wish))
	}
}

// most is what one run of work may take. It is half where it is a namespace's: nobody can take back what work holds while
// its upstream drips, so that others are left theirs.
func (b *Budget) most(wish fair.Wish) int64 {
	if wish.Namespace == "" {
		return b.total
	}
	return (b.total + 1) / 2
}

func (b *Budget) attempt(ctx context.Context, wish fair.Wish, work func(context.Context) error) error {
	share, err := b.pool.Take(ctx, wish)
	if err != nil {
		return fmt.Errorf("wait for %d bytes of memory: %w", wish.Weight, err)
	}
	defer share.Release()
	return work(context.WithValue(ctx, key{}, &account{most: b.most(wish), share: share}))
}

type key struct{}

// account is what one run of work has drawn.
type account struct {
	most  int64
	share *fair.Share

	mu    sync.Mutex
	drawn int64
}

// Draw takes bytes that are going to be allocated. They are given back when the work ends, or by Return. The error is
// ErrBudget when there will never be so much, or else one that Do answers; work passes it on.
// Without an account in the context nothing is bounded.
func Draw(ctx context.Context, bytes int64) error {
	a, ok := ctx.Value(key{}).(*account)
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	need := a.drawn + bytes
	if need > a.most {
		return fmt.Errorf("%w: %d bytes are needed, and of --memory-budget the work of one namespace may take %d", ErrBudget, need, a.most)
	}
	if need > a.share.Weight() && !a.share.Grow(min((need+step-1)/step*step, a.most)) {
		return &shortage{need: need}
	}
	a.drawn = need
	return nil
}

// Return gives back bytes that were drawn and are not allocated any more.
func Return(ctx context.Context, bytes int64) {
	if a, ok := ctx.Value(key{}).(*account); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.drawn -= bytes
	}
}
