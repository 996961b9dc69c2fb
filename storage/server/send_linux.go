package server

import (
	"cmp"
	"errors"
	"io"
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

// sendFile lets the kernel send a file. errors.ErrUnsupported when it does not do that, or not to the end.
func (p *place) sendFile(src *io.LimitedReader) (sent int64, err error) {
	file, ok := src.R.(interface {
		io.Seeker
		Fd() uintptr
	})
	if !ok {
		return 0, errors.ErrUnsupported
	}
	start, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	sent, err = p.send(src.N, func(to int, done int64) (int, error) {
		from := start + done
		return unix.Sendfile(to, int(file.Fd()), &from, int(min(src.N-done, 1<<30)))
	})
	src.N -= sent
	if src.N == 0 || err != nil && !errors.As(err, new(unix.Errno)) {
		return sent, err
	}
	// Be it the file or the client, who copies the rest learns it.
	_, err = file.Seek(sent, io.SeekCurrent)
	return sent, cmp.Or(err, errors.ErrUnsupported)
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
	var since time.Time
	err = raw.Write(func(to uintptr) bool {
		now := p.listener.now()
		if waited {
			p.givesWay.Store(never) // It is the disk that may be waited for.
		}
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
			taken, since = 0, now
		}
		since = since.Add(p.listener.now().Sub(now)) // What the disk took is not the client's time.
		p.await(since)
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
