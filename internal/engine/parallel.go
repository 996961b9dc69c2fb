package engine

import (
	"context"
	"sync"
)

// each does something for every item, a bounded number at a time, and gives the results in the items' order. Once the
// context has ended no further item is begun; its result is that of skipped.
func each[T, R any](ctx context.Context, parallel int, items []T, do func(T) R, skipped func(T, error) R) []R {
	results := make([]R, len(items))
	var (
		group sync.WaitGroup
		slots = make(chan struct{}, parallel)
	)
	for i, item := range items {
		slots <- struct{}{}
		if err := ctx.Err(); err != nil {
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
