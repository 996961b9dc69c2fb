// Package fair shares what a process has little of, such as workers, downloads, memory and child processes, among the
// namespaces that want it. It does not know what is shared, or what becomes of it.
package fair

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// ErrFull says that too many of a namespace wait already.
var ErrFull = errors.New("too many others wait")

// Pool is so much of something. One namespace gets half of it at most, and so do all together that are not known to work:
// what they wait for may hang. Who waits gets theirs by turns of the namespaces, and in one of them first come, first
// served. A share that is larger than its part is granted once nobody else has any of that, and nobody overtakes it.
//
// It is safe for concurrent use. A nil Pool has no bounds.
type Pool struct {
	total int64
	queue int

	mu     sync.Mutex
	used   map[account]int64
	queues map[account][]*Share
	order  []account // of the queues, those that had something last at the end
}

// account is what is counted together, and bounded. Without a namespace it is everybody's.
type account struct {
	namespace string
	unready   bool
	urgent    bool // of queues alone
}

// New returns a pool of so many units. Queue bounds how many of a namespace wait; zero means no bound.
func New(total int64, queue int) *Pool {
	return &Pool{total: total, queue: queue, used: map[account]int64{}, queues: map[account][]*Share{}}
}

// Wish is for a share.
type Wish struct {
	// Namespace is whose turn it is; without one the share is bounded together with all others only.
	Namespace string
	// Unready says that it is not known to work.
	Unready bool
	// Urgent says that somebody waits for the answer: it has a queue of its own in its namespace.
	Urgent bool
	// Weight is how many units; zero means one.
	Weight int64
	// Own is what whoever asks holds already, with the same namespace and readiness: nobody waits for themselves.
	Own int64
}

// Share is a part of a pool, or a place in the queue for one.
type Share struct {
	pool    *Pool
	wish    Wish
	queue   account       // What may hang does not hold up what is known to work.
	granted chan struct{} // closed when it is
	call    func()
	gone    bool
}

// Take waits for a share until ctx ends, whose cause it gives then; the other error is ErrFull.
func (p *Pool) Take(ctx context.Context, wish Wish) (*Share, error) {
	if p == nil {
		return nil, nil
	}
	share := p.Ask(wish, func() {})
	if share == nil {
		return nil, ErrFull
	}
	if share.Granted() {
		return share, nil // However little patience is left: nobody was waited for.
	}
	select {
	case <-share.granted:
		return share, nil
	case <-ctx.Done():
		share.Release()
		return nil, context.Cause(ctx)
	}
}

// Ask gives a share that is granted at once, or else a place in the queue: then call is called when its turn has come. It
// must neither block nor use the pool. There is no share where the queue is full.
func (p *Pool) Ask(wish Wish, call func()) *Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	wish.Weight = max(wish.Weight, 1)
	share := &Share{pool: p, wish: wish, queue: account{wish.Namespace, wish.Unready, wish.Urgent}, granted: make(chan struct{}), call: func() {}}
	waiting := p.queues[share.queue]
	if p.queue > 0 && len(waiting) >= p.queue {
		return nil
	}
	if len(waiting) == 0 {
		p.order = append(p.order, share.queue)
	}
	p.queues[share.queue] = append(waiting, share)
	p.next()
	share.call = call
	return share
}

// Granted tells whether the share's turn has come.
func (s *Share) Granted() bool {
	select {
	case <-s.granted:
		return true
	default:
		return false
	}
}

// Weight is how many units the share is of.
func (s *Share) Weight() int64 {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.wish.Weight
}

// Grow makes a granted share larger, if that fits beside what others have. Those who wait are overtaken: whoever has
// something comes to the end first.
func (s *Share) Grow(weight int64) bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	for a, limit := range s.pool.limits(s.wish) {
		if others := s.pool.used[a] - s.wish.Weight; others > 0 && others+weight > limit {
			return false
		}
	}
	s.pool.count(s.wish, weight-s.wish.Weight)
	s.wish.Weight = weight
	return true
}

// Resize makes a granted share what is needed, whether or not there is so much.
func (s *Share) Resize(weight int64) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if !s.gone {
		s.pool.count(s.wish, weight-s.wish.Weight)
		s.wish.Weight = weight
		s.pool.next()
	}
}

// Release gives the share, or its place in the queue, to those who wait. More than one call does no harm.
func (s *Share) Release() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	switch {
	case s.gone:
	case s.Granted():
		s.pool.count(s.wish, -s.wish.Weight)
	default:
		s.pool.leave(s)
	}
	s.gone = true
	s.pool.next()
}

// limits are of the accounts that the wish is counted in.
func (p *Pool) limits(w Wish) map[account]int64 {
	limits := map[account]int64{{namespace: w.Namespace}: (p.total + 1) / 2}
	if w.Unready {
		limits[account{namespace: w.Namespace, unready: true}] = (p.total/2 + 1) / 2
		limits[account{unready: true}] = p.total / 2
	}
	limits[account{}] = p.total
	return limits
}

func (p *Pool) count(wish Wish, weight int64) {
	for a := range p.limits(wish) {
		if p.used[a] += weight; p.used[a] == 0 {
			delete(p.used, a)
		}
	}
}

// next grants what fits. A queue that got something is behind all others then.
func (p *Pool) next() {
	kept := map[account]bool{} // for those who wait for it already
	unready := false           // Whether that is so of all that is for what is not ready.
	for i := 0; i < len(p.order) && !kept[account{}]; {
		if unready && p.order[i].unready {
			i++ // In an outage this is every namespace there is.
			continue
		}
		first := p.queues[p.order[i]][0]
		short := p.limits(first.wish)
		itself := false // It waits for what its own namespace has, and others may have what it could not get.
		maps.DeleteFunc(short, func(a account, limit int64) bool {
			others := p.used[a] - first.wish.Own
			fits := !kept[a] && (others <= 0 || others+first.wish.Weight <= limit)
			itself = itself || !fits && a.namespace != ""
			return fits
		})
		if len(short) == 0 {
			p.grant(first)
			kept, unready, i = map[account]bool{}, false, 0
			continue
		}
		for a := range short {
			kept[a] = kept[a] || !itself || a.namespace != ""
		}
		unready = kept[account{unready: true}]
		i++
	}
}

func (p *Pool) grant(s *Share) {
	p.count(s.wish, s.wish.Weight)
	p.leave(s)
	if at := slices.Index(p.order, s.queue); at >= 0 {
		p.order = append(slices.Delete(p.order, at, at+1), s.queue)
	}
	close(s.granted)
	s.call()
}

// leave takes a share out of its queue.
func (p *Pool) leave(s *Share) {
	at := slices.Index(p.queues[s.queue], s)
	p.queues[s.queue] = slices.Delete(p.queues[s.queue], at, at+1)
	if len(p.queues[s.queue]) == 0 {
		delete(p.queues, s.queue)
		p.order = slices.DeleteFunc(p.order, func(queue account) bool { return queue == s.queue })
	}
}
