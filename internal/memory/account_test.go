package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

const (
	mib   = 1 << 20
	total = 16 * mib
	part  = total / 8 * 3 // of one namespace's work
)

var errWork = errors.New("work failed")

// drawing is work that draws so much.
func drawing(bytes int64) func(context.Context) error {
	return func(ctx context.Context) error { return memory.Draw(ctx, bytes) }
}

func TestWhatIsNeverThereIsRefused(t *testing.T) {
	t.Parallel()
	budget := memory.New(total, "--memory=16")
	for _, bytes := range []int64{0, 1, 100 << 10, mib, part} {
		if err := budget.Do(t.Context(), fair.Wish{Namespace: "a", Unready: true}, nil, drawing(bytes)); err != nil {
			t.Errorf("%d bytes of %d: %v", bytes, total, err)
		}
	}
	for most, wish := range map[int64]fair.Wish{part: {Namespace: "a"}, total: {}} {
		if err := budget.Do(t.Context(), wish, nil, drawing(most)); err != nil {
			t.Errorf("as much as there may be: %v", err)
		}
		if err := budget.Do(t.Context(), wish, nil, drawing(most+1)); !errors.Is(err, memory.ErrBudget) {
			t.Errorf("one byte too many: %v, want ErrBudget", err)
		}
	}
	returning := func(ctx context.Context) error {
		for range 10 {
			if err := memory.Draw(ctx, part); err != nil {
				return err
			}
			memory.Return(ctx, part)
		}
		return errWork
	}
	if err := budget.Do(t.Context(), fair.Wish{Namespace: "a"}, nil, returning); !errors.Is(err, errWork) {
		t.Errorf("what was returned counts still: %v", err)
	}
	if err := (*memory.Budget)(nil).Do(t.Context(), fair.Wish{}, nil, drawing(1<<50)); err != nil {
		t.Errorf("without a budget: %v", err)
	}
}

func TestAShortageIsWaitedForWithEmptyHands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := memory.New(total, "--memory=16")
		finish, began, done := make(chan struct{}), 0, false
		go func() {
			_ = budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				if err := memory.Draw(ctx, 6*mib); err != nil {
					t.Error(err)
				}
				<-finish
				// Whoever waits holds nothing, and does not hold up whoever has something.
				if err := memory.Draw(ctx, 10*mib); err != nil {
					t.Error(err)
				}
				return nil
			})
		}()
		synctest.Wait()
		go func() {
			err := budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				began++
				if err := memory.Draw(ctx, 4*mib); err != nil {
					return err
				}
				return memory.Draw(ctx, 8*mib)
			})
			if err != nil {
				t.Error(err)
			}
			done = true
		}()
		synctest.Wait()
		if began != 1 || done {
			t.Errorf("while others have it: began %d times, done %t", began, done)
		}
		close(finish)
		synctest.Wait()
		if began != 2 || !done {
			t.Errorf("once there is enough: began %d times, done %t", began, done)
		}
	})
}

// TestOneNamespaceLeavesRoomForOthers: it holds all that it gets, as work does whose upstream drips. What is not known to
// work has something left as well.
func TestOneNamespaceLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	for _, unready := range []bool{false, true} {
		wish, needs := fair.Wish{Namespace: "b", Unready: unready}, int64(part)
		if unready {
			needs = total / 8
		}
		synctest.Test(t, func(t *testing.T) {
			budget := memory.New(total, "--memory=16")
			held, done := make(chan struct{}), false
			go func() {
				_ = budget.Do(t.Context(), fair.Wish{Namespace: "a", Unready: unready}, nil, func(ctx context.Context) error {
					var err error
					for err == nil {
						err = memory.Draw(ctx, mib)
					}
					<-held
					return errWork
				})
			}()
			synctest.Wait()
			go func() {
				if err := budget.Do(t.Context(), wish, nil, drawing(needs)); err != nil {
					t.Error(err)
				}
				done = true
			}()
			synctest.Wait()
			if !done {
				t.Error("another namespace waits for it")
			}
			close(held)
			synctest.Wait()
		})
	}
}

// TestWhoWaitsForMemoryHasNoSlot: work of two namespaces needs more than there is, and would take all slots.
func TestWhoWaitsForMemoryHasNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget, slots := memory.New(2*total, "--memory=32"), fair.New(4, 0)
		held, done, ended := make(chan struct{}), false, atomic.Int32{}
		for _, namespace := range []string{"a", "a", "b", "b"} {
			go func() {
				err := budget.Do(t.Context(), fair.Wish{Namespace: namespace}, slots, func(ctx context.Context) error {
					if err := memory.Draw(ctx, 2*part); err != nil {
						return err
					}
					<-held
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				ended.Add(1)
			}()
			synctest.Wait()
		}
		go func() {
			if err := budget.Do(t.Context(), fair.Wish{Namespace: "c"}, slots, drawing(mib)); err != nil {
				t.Error(err)
			}
			done = true
		}()
		synctest.Wait()
		if !done {
			t.Error("there is memory, and those who wait for more have the slots")
		}
		close(held)
		synctest.Wait()
		if ended := ended.Load(); ended != 4 {
			t.Errorf("%d of those who waited have ended", ended)
		}
	})
}

// TestFilesAreWaitedForWithEmptyHands: whoever waits for them has neither memory nor a slot, and who writes none goes on.
func TestFilesAreWaitedForWithEmptyHands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files, budget, slots := memory.NewFiles(total, "--files=16"), memory.New(total, "--memory=16"), fair.New(1, 0)
		do := func(files *memory.Budget, namespace string, work func(context.Context) error) {
			wish := fair.Wish{Namespace: namespace}
			err := files.Do(t.Context(), wish, nil, func(ctx context.Context) error { return budget.Do(ctx, wish, slots, work) })
			if err != nil {
				t.Error(err)
			}
		}
		held, began, ended := make(chan struct{}), 0, 0
		go func() {
			_ = files.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				defer func() { <-held }()
				return memory.DrawFile(ctx, total-mib)
			})
		}()
		synctest.Wait()
		go do(files, "a", func(ctx context.Context) error {
			began++
			if err := errors.Join(memory.Draw(ctx, part), memory.DrawFile(ctx, mib)); err != nil {
				return err
			}
			if err := memory.DrawFile(ctx, mib); err != nil {
				return err
			}
			ended++
			return nil
		})
		synctest.Wait()
		go do(files, "b", drawing(part))
		synctest.Wait()
		if share := slots.Ask(fair.Wish{}, func() {}); !share.Granted() || ended != 0 {
			t.Errorf("who waits has a slot, or %d did not wait", ended)
		} else {
			share.Release()
		}
		close(held)
		synctest.Wait()
		if began != 2 || ended != 1 {
			t.Errorf("began %d times, and ended %d times", began, ended)
		}
	})
}

func TestErrorsNameTheFlag(t *testing.T) {
	t.Parallel()
	err := memory.New(total, "--memory=16").Do(t.Context(), fair.Wish{Namespace: "a"}, nil, drawing(total))
	if err == nil || !strings.Contains(err.Error(), "--memory=16") {
		t.Errorf("got %v", err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	budget := memory.New(total, "--memory=16")
	err := budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		if err := memory.Draw(ctx, total); err != nil {
			return err
		}
		other, cancel := context.WithCancelCause(t.Context())
		cancel(errWork)
		if err := budget.Do(other, fair.Wish{Namespace: "b"}, nil, drawing(mib)); !errors.Is(err, errWork) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAllWorkEndsAndNeverTakesMore lets work of all sizes draw in random steps.
func TestAllWorkEndsAndNeverTakesMore(t *testing.T) {
	t.Parallel()
	budget := memory.New(total, "--memory=16")
	var drawn atomic.Int64
	var exceeded atomic.Bool
	var all sync.WaitGroup
	for i := range 60 {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			err := budget.Do(t.Context(), fair.Wish{Namespace: fmt.Sprint(i % 5), Unready: i%2 == 0}, nil, func(ctx context.Context) error {
				mine := int64(0)
				defer func() { drawn.Add(-mine) }()
				for range random.IntN(12) {
					bytes := int64(mib + random.IntN(mib/3))
					if err := memory.Draw(ctx, bytes); err != nil {
						return err
					}
					mine += bytes
					if drawn.Add(bytes) > total {
						exceeded.Store(true)
					}
				}
				return nil
			})
			if err != nil && !errors.Is(err, memory.ErrBudget) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if exceeded.Load() {
		t.Errorf("more than %d bytes were taken at once", total)
	}
}

// TestWhatIsGrantedIsEnough: beside what others hold there is just what work asks for, which is no whole number of steps.
func TestWhatIsGrantedIsEnough(t *testing.T) {
	t.Parallel()
	const held, need, left = 11 * mib, 5*mib + 1, 5*mib + mib/2
	for of, tc := range map[string]struct {
		budget *memory.Budget
		draw   func(context.Context, int64) error
	}{
		"memory":          {memory.New(held+left, "--memory=16"), memory.Draw},
		"temporary files": {memory.NewFiles(held+left, "--tmp=16"), memory.DrawFile},
	} {
		began := 0
		err := tc.budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			if err := tc.draw(ctx, held); err != nil {
				return err
			}
			return tc.budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
				if began++; began > 9 {
					return errWork
				}
				return tc.draw(ctx, need)
			})
		})
		if err != nil || began > 2 {
			t.Errorf("%s: %v after it began %d times", of, err, began)
		}
	}
}

// TestAPartGivesBackWhatItDrew, and nothing of what was drawn before it.
func TestAPartGivesBackWhatItDrew(t *testing.T) {
	t.Parallel()
	err := memory.New(total, "--memory=16").Do(t.Context(), fair.Wish{Namespace: "a"}, nil, func(ctx context.Context) error {
		if err := memory.Draw(ctx, mib); err != nil {
			return err
		}
		for range 3 {
			if err := memory.Part(ctx, drawing(part-mib)); err != nil {
				return err
			}
		}
		if err := memory.Part(ctx, drawing(part)); !errors.Is(err, memory.ErrBudget) {
			t.Errorf("beside what was drawn before: %v, want ErrBudget", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := memory.Part(t.Context(), drawing(1<<50)); err != nil {
		t.Errorf("without an account: %v", err)
	}
}
