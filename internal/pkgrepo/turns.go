package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/memory"
)

// pushAfter is the time after which finished packages are pushed before others are made.
const pushAfter = 10 * time.Second

// errShareOver is the cause when the share of the time for making packages ends.
var errShareOver = errors.New("the share of the round's time for making packages is over")

// share is the time for making packages in one Apply.
type share struct {
	within context.Context
	end    context.CancelFunc
}

// begin starts the share with the first package. The share is half of the time until the context's deadline. The other half is for the
// push.
func (s *share) begin(ctx context.Context, now time.Time) context.Context {
	if s.within == nil {
		s.within, s.end = context.WithCancel(ctx)
		if end, isBound := ctx.Deadline(); isBound {
			s.within, s.end = context.WithTimeoutCause(ctx, end.Sub(now)/2, errShareOver)
		}
	}
	return s.within
}

func (s *share) close() {
	if s.end != nil {
		s.end()
	}
}

// inTurn orders changes by the duration of their last making, so that slow changes do not delay others.
func inTurn(tasks []*task) {
	slices.SortStableFunc(tasks, func(a, b *task) int { return int(a.Cost/time.Millisecond) - int(b.Cost/time.Millisecond) })
}

// makes has a task make its package. It fails alone when the share of making is over.
func (p *plan) makes(ctx context.Context, t *task, now Current) (Made, error) {
	began := p.depot.options.Clock.Now()
	within := p.share.begin(ctx, began)
	if within.Err() != nil && ctx.Err() == nil {
		return Made{}, ErrPostponed
	}
	made, err := t.Make(within, now)
	t.took += p.depot.options.Clock.Since(began)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return made, err
}

// isFull tells whether to push the planned changes before the next task.
func (p *publisher) isFull(began time.Time, next *task) bool {
	return next.Make != nil && p.depot.options.Clock.Since(began)+next.Cost > pushAfter
}

// isCrowded tells whether a task failed because planned changes use the memory. It is planned again after their push.
func (t *task) isCrowded() bool {
	return t.done && isAny(t.result.Err, memory.ErrBudget, memory.ErrShortage)
}
