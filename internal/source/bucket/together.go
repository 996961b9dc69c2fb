package bucket

import (
	"context"
	"sync"

	"sluice.dev/sluice/internal/bucket"
)

// together lists once for all who ask for the same at the same time. Nobody gets a listing that was begun before he asked: who
// comes while one is made waits for the next, so that a new object is seen by whoever asks after it was put.
type together struct {
	mu      sync.Mutex
	running map[string]*listing
	next    map[string]*listing
}

// listing is one that is made for others too.
type listing struct {
	ended   chan struct{}
	objects []bucket.Object
	ok      bool
}

func newTogether() *together {
	return &together{running: map[string]*listing{}, next: map[string]*listing{}}
}

// list gives what is asked for, or what has just been given to another. When that one fails, all go on by themselves: each has a
// time of its own, and its own words for what goes wrong.
func (t *together) list(ctx context.Context, key string, ask func(context.Context) ([]bucket.Object, error)) (objects []bucket.Object, shared bool, err error) {
	own, before := t.enter(key)
	if before != nil {
		if err := wait(ctx, before); err != nil {
			if own != nil {
				t.leave(key, own)
			}
			return nil, false, err
		}
		if own == nil && before.ok {
			return before.objects, true, nil
		}
	}
	if own == nil {
		objects, err = ask(ctx)
		return objects, false, err
	}
	t.begin(key, own)
	defer t.leave(key, own)
	objects, err = ask(ctx)
	own.objects, own.ok = objects, err == nil
	return objects, false, err
}

// enter tells what to make, and what to wait for before. Who has nothing to make gets what he waits for.
func (t *together) enter(key string) (own, before *listing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	running, next := t.running[key], t.next[key]
	if running != nil && next != nil {
		return nil, next
	}
	own = &listing{ended: make(chan struct{})}
	if running == nil {
		t.running[key] = own
	} else {
		t.next[key] = own
	}
	return own, running
}

// begin makes the next one the running one.
func (t *together) begin(key string, own *listing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next[key] == own {
		delete(t.next, key)
		t.running[key] = own
	}
}

// leave has others go on.
func (t *together) leave(key string, own *listing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range []map[string]*listing{t.running, t.next} {
		if all[key] == own {
			delete(all, key)
		}
	}
	close(own.ended)
}

func wait(ctx context.Context, other *listing) error {
	select {
	case <-other.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
