package bucket_test

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestAListingThatComesUponAShortageBeginsAnew: whatever the libraries put around what went wrong.
func TestAListingThatComesUponAShortageBeginsAnew(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fake := buckets.New(t)
			fake.PageSize(5000)
			many := map[string]string{}
			for i := range 4000 {
				many[strings.Repeat("k", 1000)+string(rune('A'+i))] = ""
			}
			fake.Put(many)
			b := open(t, fake, kind, credential.Bucket{})
			budget := memory.New(16<<20, "--memory-budget")
			taken, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				_ = budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error { // Its end says all.
					if err := memory.Draw(ctx, 13<<20); err != nil {
						t.Error(err)
					}
					taken <- struct{}{}
					<-taken
					return nil
				})
			}()
			<-taken
			runs := 0
			err := budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				runs++
				_, _, err := bucket.Gather(ctx, b, "", 10_000, func(context.Context, bucket.Object) (bool, error) { return true, nil })
				if runs == 1 {
					close(taken)
				}
				return err
			})
			<-done
			if err != nil || runs < 2 {
				t.Errorf("%d runs, %v", runs, err)
			}
		})
	}
}
