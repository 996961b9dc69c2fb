package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/memory"
)

// pushAfter is how long packages are made before those that are done are pushed.
const pushAfter = 10 * time.Second

// errShareOver is why making ends that takes more than its share of the time.
var errShareOver = errors.New("the share of the round's time for making packages is over")

// share is the time for making packages in one Apply.
type share struct {
	within context.Context
	end    context.CancelFunc
}

// begin has the share begin with the first package. It is half of the time until the context's deadline: in the other half, what was made
// is pushed.
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

// inTurn orders changes by what making them took the last time, so that slow ones do not hold up others.
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

// isFull tells whether what is planned is to be pushed before another task.
func (p *publisher) isFull(began time.Time, next *task) bool {
	return next.Make != nil && p.depot.options.Clock.Since(began)+next.Cost > pushAfter
}

// isCrowded tells whether a task failed for memory that what is planned already takes. It is planned again after that is pushed.
func (t *task) isCrowded() bool {
	return t.done && isAny(t.result.Err, memory.ErrBudget, memory.ErrShortage)
}
