package bucket

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/bucket"
)

// TestWhoAsksTogetherListsOnce, and nobody gets what was begun before he asked.
func TestWhoAsksTogetherListsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, began := newTogether(), atomic.Int64{}
		ask := func(context.Context) ([]bucket.Object, error) {
			n := began.Add(1)
			time.Sleep(time.Second)
			return make([]bucket.Object, n), t.Context().Err()
		}
		got := make(chan int, 20)
		one := func() {
			objects, _, err := all.list(t.Context(), "key", ask)
			if err != nil {
				t.Error(err)
			}
			got <- len(objects)
		}
		go one()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		for range 19 {
			go one()
		}
		if first := <-got; first != 1 {
			t.Errorf("the first one got the listing %d", first)
		}
		for range 19 {
			if n := <-got; n != 2 {
				t.Errorf("one who came later got the listing %d", n)
			}
		}
		synctest.Wait()
		if began.Load() != 2 || len(all.running)+len(all.next) != 0 {
			t.Errorf("%d listings, %d and %d are left", began.Load(), len(all.running), len(all.next))
		}
		if _, shared, err := all.list(t.Context(), "other", ask); err != nil || shared {
			t.Error("another key waits")
		}
	})
}

// TestAListingThatFailsFailsForItsOwnerAlone: the others have a time of their own.
func TestAListingThatFailsFailsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, refused := newTogether(), errors.New("no")
		failing := func(context.Context) ([]bucket.Object, error) {
			time.Sleep(time.Second)
			return make([]bucket.Object, 1), refused
		}
		good := func(context.Context) ([]bucket.Object, error) { return make([]bucket.Object, 1), nil }
		ended := make(chan error, 3)
		go func() { _, _, err := all.list(t.Context(), "key", failing); ended <- err }()
		synctest.Wait()
		go func() { _, _, err := all.list(t.Context(), "key", failing); ended <- err }()
		synctest.Wait()
		objects, shared, err := all.list(t.Context(), "key", good)
		if err != nil || shared || len(objects) != 1 {
			t.Errorf("got %d, %v, %v", len(objects), shared, err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, refused) {
				t.Error(err)
			}
		}
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		slow := func(context.Context) ([]bucket.Object, error) {
			time.Sleep(time.Second)
			return nil, nil
		}
		go func() { _, _, _ = all.list(t.Context(), "key", slow) }()
		synctest.Wait()
		if _, _, err := all.list(late, "key", good); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(all.running)+len(all.next) != 0 {
			t.Error("somebody waits for ever")
		}
	})
}

// TestAListingOfOthersIsDrawnWithItsKeys: they may be a kilobyte each, and whoever listed them gives them back first.
func TestAListingOfOthersIsDrawnWithItsKeys(t *testing.T) {
	t.Parallel()
	found := make([]bucket.Object, 1000)
	for i := range found {
		found[i] = bucket.Object{Key: strings.Repeat("k", 1024), ETag: strings.Repeat("e", 100)}
	}
	if got := costOf(found); got < 1124*1000 {
		t.Errorf("%d bytes are drawn for more than %d", got, 1124*1000)
	}
}
