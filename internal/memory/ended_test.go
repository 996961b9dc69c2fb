package memory_test

import (
	"context"
	"testing"
	"time"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// TestWhatIsDrawnBehindTheEndIsNotLost is about work that somebody else still waits for when who began it has gone.
func TestWhatIsDrawnBehindTheEndIsNotLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget *memory.Budget
		draw   func(context.Context, int64) error
	}{
		"memory": {memory.New(total, "--memory=16"), memory.Draw},
		"files":  {memory.NewFiles(total, "--files=16"), memory.DrawFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var left context.Context
			if err := c.budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				left = context.WithoutCancel(ctx)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := c.draw(left, total/2); err == nil {
				t.Error("it got what nobody gives back")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.budget.Do(ctx, fair.Wish{}, nil, func(ctx context.Context) error { return c.draw(ctx, total) }); err != nil {
				t.Error(err)
			}
		})
	}
}
