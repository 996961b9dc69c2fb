package function

import (
	"context"
	"sync"

	"sluice.dev/sluice/internal/kpt"
)

// sharing renders each package once for all who ask for it, at the same time or later.
type sharing struct {
	render  func(context.Context, kpt.Package) (*rendered, error)
	observe func(isKnown bool, err error)

	mu      sync.Mutex
	kept    *cache
	flights map[string]*flight // by what they render
}

// flight is a package that is being rendered for all who wait for it.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int

	result *rendered
	err    error
}

// known is what is kept under the key.
func (s *sharing) known(key string) (*rendered, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.get(key)
}

// drop forgets what is kept under the key, if it is this.
func (s *sharing) drop(key string, stale *rendered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.drop(key, stale)
}

// join waits for whoever renders the package, and begins to if nobody does. Rendering ends when nobody waits any more; who
// leaves does not harm the others.
func (s *sharing) join(ctx context.Context, key string, p kpt.Package) (*rendered, error) {
	s.mu.Lock()
	if done, found := s.kept.get(key); found {
		s.mu.Unlock()
		return done, nil
	}
	f, found := s.flights[key]
	if !found {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{done: make(chan struct{}), cancel: cancel}
		s.flights[key] = f
		go s.fly(shared, key, f, p)
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		s.leave(key, f)
		return nil, context.Cause(ctx)
	}
}

// fly renders and tells all who wait.
func (s *sharing) fly(ctx context.Context, key string, f *flight, p kpt.Package) {
	defer f.cancel()
	f.err = guard(func() (err error) {
		f.result, err = s.render(ctx, p)
		return err
	})
	s.observe(false, f.err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.err == nil {
		s.kept.add(key, f.result)
	}
	s.forget(key, f)
	close(f.done)
}

// leave is for who waits no longer. The last one ends the flight, and who comes then begins another.
func (s *sharing) leave(key string, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		s.forget(key, f)
	}
}

func (s *sharing) forget(key string, f *flight) {
	if s.flights[key] == f {
		delete(s.flights, key)
	}
}
