package upstream

import (
	"net"
	"sync/atomic"
)

// countingListener counts what goes over the wire in both directions.
type countingListener struct {
	net.Listener
	outer             net.Listener // what the server accepts from: this one, or TLS on top of it
	in, out, accepted atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	return &countingConn{Conn: conn, listener: l}, nil
}

func (l *countingListener) reset() {
	l.in.Store(0)
	l.out.Store(0)
	l.accepted.Store(0)
}

type countingConn struct {
	net.Conn
	listener *countingListener
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.listener.in.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.listener.out.Add(int64(n))
	return n, err
}
