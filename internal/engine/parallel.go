package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// goOn is how soon a round follows one whose time was up.
const goOn = time.Second

// errLate says that something was not begun, because the round had taken its time: the next one goes on with it.
var errLate = errors.New("this takes longer than one round; it goes on in the next one")

// over says why nothing new is to be begun: the caller has given up, or the round has taken its time. A slow API server
// or webhook would hold a worker else for as long as there are members.
func (r *round) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.engine.clock.Now().Before(r.until) {
		return errLate
	}
	return nil
}

// late is the failure of a round that did not come to its end, and met no error.
func late(stage Stage) error {
	return failure.At(stage, failure.Wait(modulesv1.ProgressingReason, goOn, errLate))
}

// each does something for every item, a bounded number at a time, and gives the results in the items' order. Once it is
// over no further item is begun; its result is that of skipped.
func each[T, R any](over func() error, parallel int, items []T, do func(T) R, skipped func(T, error) R) []R {
	results := make([]R, len(items))
	var (
		group sync.WaitGroup
		slots = make(chan struct{}, parallel)
	)
	for i, item := range items {
		slots <- struct{}{}
		if err := over(); err != nil {
			<-slots
			results[i] = skipped(item, err)
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			results[i] = do(item)
		})
	}
	group.Wait()
	return results
}
