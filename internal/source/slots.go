package source

import "context"

// Slots bound how much is fetched and archived at once: that takes memory, disk and CPU, where asking upstream what is
// new takes nothing. Objects that are not known to work get at most half of the slots, so that upstreams which answer
// and then hang do not hold them all.
type Slots struct {
	all     chan struct{}
	unready chan struct{}
}

// NewSlots returns n slots.
func NewSlots(n int) *Slots {
	return &Slots{all: make(chan struct{}, n), unready: make(chan struct{}, max(1, n/2))}
}

// acquire waits for a slot until ctx ends. Release gives it back.
func (s *Slots) acquire(ctx context.Context, unready bool) (release func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	if unready {
		if err := take(ctx, s.unready); err != nil {
			return nil, err
		}
	}
	if err := take(ctx, s.all); err != nil {
		if unready {
			<-s.unready
		}
		return nil, err
	}
	return func() {
		<-s.all
		if unready {
			<-s.unready
		}
	}, nil
}

func take(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
