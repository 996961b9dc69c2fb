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
	flag  string
	pool  *fair.Pool
}

// New returns a budget. Errors say which flag it follows from, such as --budget=10.
func New(total int64, flag string) *Budget {
	return &Budget{total: total, flag: flag, pool: fair.New(total, 0)}
}

// Do runs work that draws from the context it gets, once it has a slot, which slots may be nil for, and its turn has come.
// Work that comes upon a shortage is run again from its beginning, when there is what it asked for. The error is work's own,
// or the cause of the context's end while it waits.
func (b *Budget) Do(ctx context.Context, wish fair.Wish, slots *fair.Pool, work func(context.Context) error) error {
	if b == nil {
		slot, err := takeSlot(ctx, wish, slots)
		if err != nil {
			return err
		}
		defer slot.Release()
		return work(ctx)
	}
	wish.Weight = min(least, b.most(wish))
	err := b.try(ctx, wish, slots, work)
	for {
		short, ok := errors.AsType[*shortage](err)
		if !ok {
			return err
		}
		if short.need > wish.Weight {
			// Twice as much each time, so that this comes to an end.
			wish.Weight = min(max(short.need, 2*wish.Weight), b.most(wish))
		}
		err = b.retry(ctx, wish, slots, work)
	}
}

// most is what one run of work may take. It is three eighths where it is a namespace's: nobody can take back what work
// holds while its upstream drips, and of the half for all that is not known to work others are left something too.
func (b *Budget) most(wish fair.Wish) int64 {
	if wish.Namespace == "" {
		return b.total
	}
	return b.total - b.total/8*5
}

// try waits for a slot alone: there is memory, or else a shortage.
func (b *Budget) try(ctx context.Context, wish fair.Wish, slots *fair.Pool, work func(context.Context) error) error {
	slot, err := takeSlot(ctx, wish, slots)
	if err != nil {
		return err
	}
	defer slot.Release()
	share := b.pool.Ask(wish, func() {})
	defer share.Release()
	if !share.Granted() {
		return &shortage{need: wish.Weight}
	}
	return b.run(ctx, wish, share, work)
}

// retry waits for memory, and then for a slot. Nobody who has one waits, so that this ends.
func (b *Budget) retry(ctx context.Context, wish fair.Wish, slots *fair.Pool, work func(context.Context) error) error {
	share, err := b.pool.Take(ctx, wish)
	if err != nil {
		return fmt.Errorf("wait for %d bytes of memory: %w", wish.Weight, err)
	}
	defer share.Release()
	slot, err := takeSlot(ctx, wish, slots)
	if err != nil {
		return err
	}
	defer slot.Release()
	return b.run(ctx, wish, share, work)
}

func takeSlot(ctx context.Context, wish fair.Wish, slots *fair.Pool) (*fair.Share, error) {
	wish.Weight = 1
	slot, err := slots.Take(ctx, wish)
	if err != nil {
		return nil, fmt.Errorf("wait for a fetch slot: %w", err)
	}
	return slot, nil
}

func (b *Budget) run(ctx context.Context, wish fair.Wish, share *fair.Share, work func(context.Context) error) error {
	return work(context.WithValue(ctx, key{}, &account{budget: b, most: b.most(wish), share: share}))
}

type key struct{}

// account is what one run of work has drawn.
type account struct {
	budget *Budget
	most   int64
	share  *fair.Share

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
		return fmt.Errorf("%w: %d bytes are needed, and the work of one namespace may take %d with %s", ErrBudget, need, a.most, a.budget.flag)
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
