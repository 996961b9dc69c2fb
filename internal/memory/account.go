// Package memory bounds what everything sizeable in a process takes together, in memory and in temporary files. Whoever is
// about to allocate or write much draws the bytes first, from the account of the work that it is part of.
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
	// least is what every account of memory has from its beginning: enough for most work.
	least = 2 << 20
	// step is how many bytes an account grows by at least.
	step = 1 << 20
)

// ErrBudget says that work needs more than one namespace may have.
var ErrBudget = errors.New("not enough")

// ErrShortage says that others have what work needs. It is answered by Do, which runs work again.
var ErrShortage = errors.New("others have it")

// shortage says that others have what work needs.
type shortage struct {
	of   *Budget
	need int64
}

// Error tells whoever does not begin anew.
func (s *shortage) Error() string {
	return fmt.Sprintf("%d bytes of %s are needed, and others have them", s.need, s.of.kind)
}

// Is tells a shortage from errors of the work itself.
func (s *shortage) Is(target error) bool { return target == ErrShortage }

// kind is what a budget is of. A context has one account of each.
type kind string

const (
	inMemory kind = "memory"
	inFiles  kind = "temporary files"
)

// Budget is so many bytes. A nil Budget has no bound.
type Budget struct {
	kind  kind
	total int64
	least int64
	flag  string
	pool  *fair.Pool
}

// New returns a budget of memory. Errors say which flag it follows from, such as --budget=10.
func New(total int64, flag string) *Budget {
	return &Budget{kind: inMemory, total: total, least: least, flag: flag, pool: fair.New(total, 0)}
}

// NewFiles returns a budget of temporary files. Most work needs none, so that nobody waits for any before they write.
func NewFiles(total int64, flag string) *Budget {
	return &Budget{kind: inFiles, total: total, flag: flag, pool: fair.New(total, 0)}
}

// Do runs work that draws from the context it gets, once it has a slot, which slots may be nil for, and its turn has come.
// Work that comes upon a shortage is run again from its beginning, when there is what it asked for. The error is work's own,
// or the cause of the context's end while it waits.
func (b *Budget) Do(ctx context.Context, wish fair.Wish, slots *fair.Pool, work func(context.Context) error) error {
	if b == nil {
		return inSlot(ctx, wish, slots, work)
	}
	wish.Weight = min(b.least, b.most(wish))
	err := b.run(ctx, wish, nil, slots, work)
	for {
		short, ok := errors.AsType[*shortage](err)
		if !ok || short.of != b {
			return err
		}
		if short.need > wish.Weight {
			// Twice as much each time, so that this comes to an end.
			wish.Weight = min(max(short.need, 2*wish.Weight), b.most(wish))
		}
		share, waited := b.pool.Take(ctx, wish)
		if waited != nil {
			return fmt.Errorf("wait for %d bytes of %s: %w", wish.Weight, b.kind, waited)
		}
		err = b.run(ctx, wish, share, slots, work)
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

// run waits for a slot and gives work an account: with the share that it waited for or, without one, with the least, which is
// there or else short. Nobody who has a slot waits, so that this ends.
func (b *Budget) run(ctx context.Context, wish fair.Wish, share *fair.Share, slots *fair.Pool, work func(context.Context) error) error {
	a := &account{budget: b, wish: wish, share: share}
	defer a.end()
	return inSlot(ctx, wish, slots, func(ctx context.Context) error {
		if share == nil && b.least > 0 && !a.grow(wish.Weight) {
			return &shortage{b, wish.Weight}
		}
		return work(context.WithValue(ctx, b.kind, a))
	})
}

// inSlot works once it has a slot.
func inSlot(ctx context.Context, wish fair.Wish, slots *fair.Pool, work func(context.Context) error) error {
	wish.Weight = 1
	slot, err := slots.Take(ctx, wish)
	if err != nil {
		return fmt.Errorf("wait for a fetch slot: %w", err)
	}
	defer slot.Release()
	return work(ctx)
}

// account is what one run of work has drawn.
type account struct {
	budget *Budget
	wish   fair.Wish

	mu    sync.Mutex
	share *fair.Share // nil until something is needed
	drawn int64
	ended bool
}

// end gives all back. Who still works for others then, as those who share what they make, gets nothing more: nobody would give
// it back.
func (a *account) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.share.Release()
}

// Draw takes bytes that are going to be allocated. They are given back when the work ends, or by Return. The error is
// ErrBudget when there will never be so much, or else one that Do answers; work passes it on.
// Without an account in the context nothing is bounded.
func Draw(ctx context.Context, bytes int64) error { return draw(ctx, inMemory, bytes) }

// Return gives back bytes that were drawn and are not allocated any more.
func Return(ctx context.Context, bytes int64) { giveBack(ctx, inMemory, bytes) }

// Part runs a part of the work at whose end all memory is given back that it has drawn. What it opens it has to close, and
// nothing else draws from the account meanwhile.
func Part(ctx context.Context, work func(context.Context) error) error {
	a, ok := ctx.Value(inMemory).(*account)
	if !ok {
		return work(ctx)
	}
	before := a.now()
	defer func() { giveBack(ctx, inMemory, a.now()-before) }()
	return work(ctx)
}

// now is how much is drawn.
func (a *account) now() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.drawn
}

// DrawFile is Draw for bytes that are going to be written to a temporary file.
func DrawFile(ctx context.Context, bytes int64) error { return draw(ctx, inFiles, bytes) }

// ReturnFile is Return for bytes whose file is gone.
func ReturnFile(ctx context.Context, bytes int64) { giveBack(ctx, inFiles, bytes) }

func draw(ctx context.Context, from kind, bytes int64) error {
	a, ok := ctx.Value(from).(*account)
	if !ok || bytes == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	need, most := a.drawn+bytes, a.budget.most(a.wish)
	if need > most {
		return fmt.Errorf("%w %s: %d bytes are needed, and the work of one namespace may take %d with %s",
			ErrBudget, a.budget.kind, need, most, a.budget.flag)
	}
	if a.ended {
		return &shortage{a.budget, need}
	}
	// More than is needed is taken only where it is there: a share that was waited for is just what was.
	if !a.grow(min((need+step-1)/step*step, most)) && !a.grow(need) {
		return &shortage{a.budget, need}
	}
	a.drawn = need
	return nil
}

// grow makes the share at least so large, if that fits beside what others have.
func (a *account) grow(weight int64) bool {
	if a.share != nil {
		return weight <= a.share.Weight() || a.share.Grow(weight)
	}
	wish := a.wish
	wish.Weight = weight
	share := a.budget.pool.Ask(wish, func() {})
	if !share.Granted() {
		share.Release()
		return false
	}
	a.share = share
	return true
}

func giveBack(ctx context.Context, to kind, bytes int64) {
	if a, ok := ctx.Value(to).(*account); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.drawn -= bytes
	}
}

// Namespace is whose work it is that draws from the context's account; empty for nobody's.
func Namespace(ctx context.Context) string {
	if a, ok := ctx.Value(inMemory).(*account); ok {
		return a.wish.Namespace
	}
	return ""
}
