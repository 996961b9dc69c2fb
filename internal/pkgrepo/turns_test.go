package pkgrepo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/pkgrepo"
)

// TestASlowPackageHoldsUpNoOther: what is done is pushed, and only the slow change fails.
func TestASlowPackageHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.options.Clock = clock.RealClock{} })
	s.Commit("main", "first", packaged("first"))
	s.sync()
	var changes []pkgrepo.Change
	for i := range 5 {
		slow := write(fmt.Sprintf("slow%d", i), "", "x")
		slow.Cost = time.Minute
		slow.Make = func(ctx context.Context, _ pkgrepo.Current) (pkgrepo.Made, error) {
			<-ctx.Done()
			return pkgrepo.Made{}, context.Cause(ctx)
		}
		changes = append(changes, slow)
	}
	changes = append(changes, write("good", "", "x"))
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	results := s.Apply(ctx, changes)
	if good := results[5]; good.Err != nil || s.refs()["refs/heads/drafts/good/"+good.Workspace] != good.Commit {
		t.Errorf("%+v", good)
	}
	if !errors.Is(results[0].Err, pkgrepo.ErrTimeout) {
		t.Error(results[0].Err)
	}
	for _, r := range results[1:5] {
		if !errors.Is(r.Err, pkgrepo.ErrPostponed) {
			t.Error(r.Err)
		}
	}
}

// TestMemoryThatOthersTakeIsWaitedFor: what is planned before is pushed, and then there is room.
func TestMemoryThatOthersTakeIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.Commit("main", "first", packaged("first"))
	large, calls := write("large", "", "x"), 0
	made := large.Make
	large.Make = func(ctx context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
		if calls++; calls == 1 {
			return pkgrepo.Made{}, memory.ErrBudget
		}
		return made(ctx, now)
	}
	never := write("never", "", "x")
	never.Make = func(context.Context, pkgrepo.Current) (pkgrepo.Made, error) { return pkgrepo.Made{}, memory.ErrBudget }
	results := s.Apply(t.Context(), []pkgrepo.Change{write("one", "", "x"), large, never, write("two", "", "x")})
	for i, want := range []error{nil, nil, memory.ErrBudget, nil} {
		if err := results[i].Err; !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", i, err, want)
		}
	}
	s.sound()
}
