package server

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chunk is what a client has to accept within the progress timeout, in bytes.
	chunk = 64 << 10
	// stalledAfter is how long a client may take to accept the next chunk while others wait for a place.
	stalledAfter = time.Second
	// never is when a connection gives way that waits for us.
	never = math.MaxInt64
)

var errNotTCP = errors.New("artifacts are served over TCP alone")

// limitedListener bounds the TCP connections that are open at a time, in all and for one client address. One more of an
// address that has its share is closed at once. One more in all takes the place of the connection that has waited longest
// for its client: for a request, or for more than stalledAfter to accept a chunk. When all are busy it waits.
type limitedListener struct {
	net.Listener
	total, perIP int
	progress     time.Duration
	now          func() time.Time
	start        time.Time

	mu    sync.Mutex
	open  map[*place]struct{}
	share map[netip.Addr]int

	close  sync.Once
	closed chan struct{}
}

// place is an open connection. For io.Copy it is a TCP connection, to which files are sent by sendfile.
type place struct {
	*net.TCPConn
	listener *limitedListener
	client   netip.Addr
	// givesWay is from when on a newcomer may have the place, in nanoseconds since the listener's start.
	givesWay atomic.Int64
	// more says that the next write is a header that a body follows.
	more bool
}

// placeKey is where a request's context has its connection.
type placeKey struct{}

func limit(listener net.Listener, options Options) *limitedListener {
	return &limitedListener{
		Listener: listener,
		total:    options.MaxConns,
		perIP:    options.MaxConnsPerIP,
		progress: options.ProgressTimeout,
		now:      options.Now,
		start:    options.Now(),
		open:     make(map[*place]struct{}),
		share:    make(map[netip.Addr]int),
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
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return nil, errors.Join(errNotTCP, conn.Close())
		}
		newcomer := &place{TCPConn: tcp, listener: l, client: address(tcp)}
		is := l.enter(newcomer)
		for is == full && l.waitForRoom() {
			is = l.enter(newcomer)
		}
		switch is {
		case entered:
			return newcomer, nil
		case refused:
			_ = tcp.Close() // The client sees the end of it either way.
		case full:
			return nil, errors.Join(net.ErrClosed, tcp.Close())
		}
	}
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type entry int

const (
	entered entry = iota
	refused       // The address has its share.
	full          // Nobody gives way.
)

// enter gives the newcomer a place, which may be that of another connection.
func (l *limitedListener) enter(newcomer *place) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.share[newcomer.client] >= l.perIP {
		return refused
	}
	now := l.since(l.now())
	if len(l.open) >= l.total {
		slowest := l.slowest(now)
		if slowest == nil {
			return full
		}
		l.drop(slowest)
		_ = slowest.TCPConn.Close() // It makes room, however it takes it.
	}
	newcomer.givesWay.Store(now)
	l.open[newcomer] = struct{}{}
	l.share[newcomer.client]++
	return entered
}

// since is what a time is to givesWay: whoever sets the machine's clock neither keeps a place for anybody nor takes one away.
func (l *limitedListener) since(t time.Time) int64 { return t.Sub(l.start).Nanoseconds() }

// slowest is the connection that has waited longest for its client, of those that give way.
func (l *limitedListener) slowest(now int64) (slowest *place) {
	least := now + 1
	for p := range l.open {
		if since := p.givesWay.Load(); since < least {
			slowest, least = p, since
		}
	}
	return slowest
}

// drop takes the place away, once. The lock is held.
func (l *limitedListener) drop(p *place) {
	if _, is := l.open[p]; !is {
		return
	}
	delete(l.open, p)
	if l.share[p.client]--; l.share[p.client] == 0 {
		delete(l.share, p.client)
	}
}

// waitForRoom is false once the listener is closed.
func (l *limitedListener) waitForRoom() bool {
	select {
	case <-time.After(stalledAfter / 100): // Nobody tells that a client has stalled.
	case <-l.closed:
		return false
	}
	return true
}

// watch is an http.Server's ConnState.
func (l *limitedListener) watch(conn net.Conn, state http.ConnState) {
	p, ok := conn.(*place)
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		p.givesWay.Store(l.since(l.now()))
	case http.StateActive:
		p.givesWay.Store(never)
	case http.StateNew, http.StateHijacked, http.StateClosed:
		// A new connection waits from the start; one that ends says so itself.
	}
}

// await gives the client time for the next chunk, which has begun.
func (p *place) await(began time.Time) {
	p.givesWay.Store(p.listener.since(began.Add(stalledAfter)))
	_ = p.SetWriteDeadline(began.Add(p.listener.progress)) // If the connection is closed, waiting tells.
}

// ReadFrom implements io.ReaderFrom.
func (p *place) ReadFrom(src io.Reader) (sent int64, err error) {
	if limited, ok := src.(*io.LimitedReader); ok {
		if sent, err = p.sendFile(limited); !errors.Is(err, errors.ErrUnsupported) {
			return sent, err
		}
	}
	copied, err := io.Copy(writerOnly{p}, src)
	return sent + copied, err
}

func (p *place) Close() error {
	defer func() {
		p.listener.mu.Lock()
		defer p.listener.mu.Unlock()
		p.listener.drop(p)
	}()
	return p.TCPConn.Close()
}

func address(conn *net.TCPConn) netip.Addr {
	client, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{} // It has been closed.
	}
	return client.AddrPort().Addr().Unmap().WithZone("")
}
