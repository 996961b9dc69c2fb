package server

import (
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Write implements net.Conn. A header that a body follows waits for the body's first bytes: they are one packet, which
// wakes the client once.
func (p *place) Write(b []byte) (int, error) {
	flags := 0
	if p.more {
		flags, p.more = unix.MSG_MORE, false
	}
	sent, err := p.send(int64(len(b)), func(to int, done int64) (int, error) {
		return unix.SendmsgN(to, b[done:], nil, nil, flags)
	})
	return int(sent), err
}

// sendFile lets the kernel send a file. errors.ErrUnsupported when it does not do that.
func (p *place) sendFile(src *io.LimitedReader) (sent int64, err error) {
	file, ok := src.R.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(from uintptr) {
		sent, err = p.send(src.N, func(to int, done int64) (int, error) {
			return unix.Sendfile(to, int(from), nil, int(min(src.N-done, 1<<30)))
		})
	})
	if sent == 0 && src.N > 0 && (err == nil || errors.Is(err, unix.EINVAL)) {
		err = errors.ErrUnsupported
	}
	src.N -= sent
	return sent, errors.Join(err, controlErr)
}

// send makes the call until all is sent, or nothing more is. It has a deadline only while it waits for the client, which
// moves on with each chunk that the client has taken.
func (p *place) send(all int64, call func(to int, done int64) (int, error)) (sent int64, err error) {
	raw, err := p.SyscallConn()
	if err != nil {
		return 0, err
	}
	var callErr error
	waited, taken := false, int64(chunk) // The client has the whole time for the first.
	err = raw.Write(func(to uintptr) bool {
		n := 1
		for callErr = nil; sent < all && n > 0 && callErr == nil; {
			before := sent
			n, callErr = uninterrupted(func() (int, error) { return call(int(to), before) })
			sent, taken = sent+int64(max(n, 0)), taken+int64(max(n, 0))
		}
		if !errors.Is(callErr, unix.EAGAIN) {
			return true
		}
		if waited = true; taken >= chunk {
			taken = 0
			p.await()
		}
		return false
	})
	if waited {
		p.givesWay.Store(never)
		_ = p.SetWriteDeadline(time.Time{})
	}
	return sent, errors.Join(err, callErr)
}

// uninterrupted makes the call until no signal ends it.
func uninterrupted(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
