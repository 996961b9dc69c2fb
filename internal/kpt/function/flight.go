package function

import (
	"context"

	"sluice.dev/sluice/internal/kpt"
)

// flight is a package that is being rendered for all who wait for it.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int

	result *rendered
	err    error
}

// join returns what is kept under the key, or waits for whoever renders the package, and begins to if nobody does. Rendering ends
// when nobody waits any more; who leaves does not harm the others.
func (r *Renderer) join(ctx context.Context, key string, p kpt.Package) (*rendered, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	if done, found := r.kept.get(key); found {
		r.mu.Unlock()
		return done, nil
	}
	f, found := r.flights[key]
	if !found {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{done: make(chan struct{}), cancel: cancel}
		r.flights[key] = f
		go r.fly(shared, key, f, p)
	}
	f.waiting++
	r.mu.Unlock()

	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		r.leave(key, f)
		return nil, context.Cause(ctx)
	}
}

// fly renders and tells all who wait.
func (r *Renderer) fly(ctx context.Context, key string, f *flight, p kpt.Package) {
	defer f.cancel()
	f.result, f.err = r.render(ctx, p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.err == nil {
		r.kept.add(key, f.result)
	}
	r.forget(key, f)
	close(f.done)
}

// leave is for who waits no longer. The last one ends the flight, and who comes then begins another.
func (r *Renderer) leave(key string, f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		r.forget(key, f)
	}
}

func (r *Renderer) forget(key string, f *flight) {
	if r.flights[key] == f {
		delete(r.flights, key)
	}
}
