package server

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// sending is what a connection has in hand.
type sending struct {
	raw syscall.RawConn
	// more is whether the next write is a header that a body follows.
	more bool
}

// announce says that a file is sent next, and is false where the connection does not do that by itself.
func (p *place) announce() bool {
	if p == nil {
		return false
	}
	if p.sending.raw == nil {
		raw, err := p.SyscallConn()
		if err != nil {
			return false
		}
		p.sending.raw = raw
	}
	p.sending.more = true
	return true
}

// Write sends a header that was announced together with the body's first bytes: it is one packet, and wakes the client once.
func (p *place) Write(b []byte) (written int, err error) {
	if !p.sending.more {
		return p.TCPConn.Write(b)
	}
	p.sending.more = false
	var sendErr error
	err = p.sending.raw.Write(func(to uintptr) bool {
		for sendErr = nil; written < len(b) && sendErr == nil; {
			var n int
			n, sendErr = uninterrupted(func() (int, error) { return unix.SendmsgN(int(to), b[written:], nil, nil, unix.MSG_MORE) })
			written += max(n, 0)
		}
		return !errors.Is(sendErr, unix.EAGAIN)
	})
	return written, errors.Join(err, sendErr)
}

// ReadFrom sends a file that was announced by sendfile. The deadline moves on when the client is waited for and has taken
// a chunk since it was set, so that nothing is done for each chunk. errors.ErrUnsupported when the kernel does not send
// it: from then on the answer is net/http's.
func (p *place) ReadFrom(src io.Reader) (sent int64, err error) {
	p.sending.more = false
	limited, _ := src.(*io.LimitedReader)
	if limited == nil || p.sending.raw == nil {
		return p.TCPConn.ReadFrom(src)
	}
	if file, ok := limited.R.(syscall.Conn); ok {
		sent, err = p.sendFile(file, limited)
	}
	if sent == 0 && limited.N > 0 && (err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, errors.ErrUnsupported)) {
		p.sending.raw = nil
		return 0, errors.ErrUnsupported
	}
	return sent, err
}

func (p *place) sendFile(file syscall.Conn, left *io.LimitedReader) (sent int64, err error) {
	from, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var sendErr error
	taken := int64(chunk) // The client has the whole time for the first.
	err = p.sending.raw.Write(func(to uintptr) bool {
		controlErr := from.Control(func(from uintptr) {
			for n := 1; left.N > 0 && n > 0; {
				n, sendErr = uninterrupted(func() (int, error) { return unix.Sendfile(int(to), int(from), nil, int(min(left.N, 1<<30))) })
				if sendErr != nil {
					return
				}
				sent, taken, left.N = sent+int64(n), taken+int64(n), left.N-int64(n)
			}
		})
		if controlErr != nil || !errors.Is(sendErr, unix.EAGAIN) {
			sendErr = errors.Join(sendErr, controlErr)
			return true
		}
		if taken >= chunk {
			taken = 0
			_ = p.SetWriteDeadline(p.listener.now().Add(p.listener.progress)) // If the connection is closed, waiting tells.
		}
		return false
	})
	return sent, errors.Join(err, sendErr)
}

// uninterrupted makes the call until no signal ends it.
func uninterrupted(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
