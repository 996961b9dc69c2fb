package server

import (
	"io"
	"net"
)

// wrap makes the place a connection. A TCP connection stays one for io.Copy, which sends files by sendfile.
func (p *place) wrap() net.Conn {
	if tcp, ok := p.conn.(*net.TCPConn); ok {
		return &tcpConn{TCPConn: tcp, place: p}
	}
	return &plainConn{Conn: p.conn, place: p}
}

type tcpConn struct {
	*net.TCPConn
	*place
}

func (c *tcpConn) Write(b []byte) (n int, err error) {
	c.send(func() { n, err = c.TCPConn.Write(b) })
	return n, err
}

func (c *tcpConn) ReadFrom(r io.Reader) (n int64, err error) {
	c.send(func() { n, err = c.TCPConn.ReadFrom(r) })
	return n, err
}

func (c *tcpConn) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}

type plainConn struct {
	net.Conn
	*place
}

func (c *plainConn) Write(b []byte) (n int, err error) {
	c.send(func() { n, err = c.Conn.Write(b) })
	return n, err
}

func (c *plainConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
