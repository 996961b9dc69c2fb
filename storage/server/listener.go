package server

import (
	"net"
	"net/netip"
	"sync"
)

// Limit bounds the connections that are open at a time: in all (further ones wait in the kernel's queue) and for one
// client address (further ones are closed at once, so that one client cannot take all places). Zero means no limit.
func Limit(listener net.Listener, total, perIP int) net.Listener {
	limited := &limitedListener{Listener: listener, perIP: perIP, open: make(map[netip.Addr]int), closed: make(chan struct{})}
	if total > 0 {
		limited.places = make(chan struct{}, total)
	}
	return limited
}

type limitedListener struct {
	net.Listener
	places chan struct{} // nil without a limit
	perIP  int

	mu   sync.Mutex
	open map[netip.Addr]int

	close  sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.leave()
			return nil, err
		}
		client := address(conn)
		if !l.admit(client) {
			_ = conn.Close() // The client sees the end of it either way.
			continue
		}
		return wrap(conn, func() {
			l.dismiss(client)
			l.leave()
		}), nil
	}
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *limitedListener) enter() error {
	if l.places == nil {
		return nil
	}
	select {
	case l.places <- struct{}{}:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

func (l *limitedListener) leave() {
	if l.places != nil {
		<-l.places
	}
}

func (l *limitedListener) admit(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.perIP > 0 && l.open[client] >= l.perIP {
		return false
	}
	l.open[client]++
	return true
}

func (l *limitedListener) dismiss(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[client]--; l.open[client] == 0 {
		delete(l.open, client)
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

// wrap calls gone when the connection is closed. A TCP connection stays one for io.Copy, which sends files by sendfile.
func wrap(conn net.Conn, gone func()) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &tcpConn{TCPConn: tcp, gone: sync.OnceFunc(gone)}
	}
	return &plainConn{Conn: conn, gone: sync.OnceFunc(gone)}
}

type tcpConn struct {
	*net.TCPConn
	gone func()
}

// Close implements net.Conn.
func (c *tcpConn) Close() error {
	defer c.gone()
	return c.TCPConn.Close()
}

type plainConn struct {
	net.Conn
	gone func()
}

// Close implements net.Conn.
func (c *plainConn) Close() error {
	defer c.gone()
	return c.Conn.Close()
}
