package server

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// stalledAfter is how long a client may take to accept the next chunk while others wait for a place.
const stalledAfter = time.Second

// limitedListener bounds the connections that are open at a time, in all and for one client address. One more of an
// address that has its share is closed at once. One more in all takes the place of the connection that has waited longest
// for its client: for a request, or for more than stalledAfter to accept a chunk. When all are busy it waits.
type limitedListener struct {
	net.Listener
	total, perIP int
	now          func() time.Time

	mu    sync.Mutex
	open  map[*place]struct{}
	share map[netip.Addr]int
	freed chan struct{} // has an element when a place may be free

	close  sync.Once
	closed chan struct{}
}

// place is an open connection.
type place struct {
	listener *limitedListener
	conn     net.Conn
	client   netip.Addr
	left     bool
	// since is when the connection began to wait for its client; zero while it does not.
	since time.Time
	// sending tells that it waits for the client to accept bytes, not to send a request.
	sending bool
}

func limit(listener net.Listener, options Options) *limitedListener {
	return &limitedListener{
		Listener: listener,
		total:    options.MaxConns,
		perIP:    options.MaxConnsPerIP,
		now:      options.Now,
		open:     make(map[*place]struct{}),
		share:    make(map[netip.Addr]int),
		freed:    make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		newcomer := &place{listener: l, conn: conn, client: address(conn)}
		entered, err := l.enter(newcomer)
		if err != nil {
			_ = conn.Close() // Nobody has seen it yet.
			return nil, err
		}
		if entered {
			return newcomer.wrap(), nil
		}
		_ = conn.Close() // The client sees the end of it either way.
	}
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// enter gives the newcomer a place, when there is one. It is false for an address that has its share.
func (l *limitedListener) enter(newcomer *place) (bool, error) {
	for {
		is, slowest, again := l.tryEnter(newcomer)
		if is != full {
			return is == entered, nil
		}
		if slowest != nil {
			slowest.leave()
			_ = slowest.conn.Close() // It makes room, however it takes it.
			continue
		}
		timer := time.NewTimer(again)
		select {
		case <-l.freed:
		case <-timer.C:
		case <-l.closed:
			timer.Stop()
			return false, net.ErrClosed
		}
		timer.Stop()
	}
}

type entry int

const (
	entered entry = iota
	refused
	full
)

// tryEnter also tells who is to make room when all places are taken, or when to ask again if that is nobody.
func (l *limitedListener) tryEnter(newcomer *place) (is entry, slowest *place, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.perIP > 0 && l.share[newcomer.client] >= l.perIP {
		return refused, nil, 0
	}
	now := l.now()
	if l.total <= 0 || len(l.open) < l.total {
		newcomer.since = now
		l.open[newcomer] = struct{}{}
		l.share[newcomer.client]++
		return entered, nil, 0
	}
	for other := range l.open {
		waits := !other.since.IsZero() && (!other.sending || now.Sub(other.since) > stalledAfter)
		if waits && (slowest == nil || other.since.Before(slowest.since)) {
			slowest = other
		}
	}
	return full, slowest, stalledAfter / 10
}

// watch is an http.Server's ConnState.
func (l *limitedListener) watch(conn net.Conn, state http.ConnState) {
	p, ok := conn.(interface {
		waits(since time.Time, sending bool)
	})
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		p.waits(l.now(), false)
	case http.StateActive:
		p.waits(time.Time{}, false)
	case http.StateNew, http.StateHijacked, http.StateClosed:
		// A new connection waits from the start; one that ends says so itself.
	}
}

func (p *place) waits(since time.Time, sending bool) {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	p.since, p.sending = since, sending
	if !since.IsZero() && !sending {
		p.listener.signal()
	}
}

// send notes how long the client takes to accept what write sends.
func (p *place) send(write func()) {
	p.waits(p.listener.now(), true)
	write()
	p.waits(time.Time{}, false)
}

func (p *place) leave() {
	l := p.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	delete(l.open, p)
	if l.share[p.client]--; l.share[p.client] == 0 {
		delete(l.share, p.client)
	}
	l.signal()
}

// signal lets a newcomer look again.
func (l *limitedListener) signal() {
	select {
	case l.freed <- struct{}{}:
	default: // It is known already.
	}
}

// address is the zero address for clients that have none, such as those of a Unix socket.
func address(conn net.Conn) netip.Addr {
	client, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return client.Addr().Unmap().WithZone("")
}
