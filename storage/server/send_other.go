//go:build !linux

package server

import (
	"errors"
	"io"
)

// Write implements net.Conn. The client is waited for chunk by chunk.
func (p *place) Write(b []byte) (written int, err error) {
	for len(b) > 0 && err == nil {
		p.await(p.listener.now())
		var n int
		n, err = p.TCPConn.Write(b[:min(len(b), chunk)])
		written, b = written+n, b[n:]
	}
	return written, err
}

// sendFile is for Linux.
func (p *place) sendFile(*io.LimitedReader) (int64, error) { return 0, errors.ErrUnsupported }
