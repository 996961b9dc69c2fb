package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// TestARequestWithoutATurnIsToldFromOtherErrors: the client's rate limiter refuses before the deadline what would come after it.
func TestARequestWithoutATurnIsToldFromOtherErrors(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	limiter := flowcontrol.NewTokenBucketRateLimiter(1e-6, 1)
	if err := limiter.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := limiter.Wait(ctx); !isTooLate(err) {
		t.Errorf("the limiter's refusal is not known: %v", err)
	}
	for _, other := range []error{nil, context.DeadlineExceeded, errors.New("forbidden")} {
		if isTooLate(other) {
			t.Errorf("%v is no refusal of the limiter", other)
		}
	}
}
