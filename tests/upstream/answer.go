package upstream

import (
	"context"
	"errors"
	"net/http"
)

// errBroken ends an answer whose connection is to be closed.
var errBroken = errors.New("answer broken off by a fault")

// answer passes an answer on to the client, counts it, and breaks it where the fault says.
type answer struct {
	http.ResponseWriter
	ctx   context.Context // An answer lives exactly as long as its request.
	fault transfer
	// seen is told of the status once and of every piece of the body before it is sent.
	seen func(status, bytes int)

	status  int
	matched int   // bytes of the pack's signature seen so far
	counted int64 // bytes since the place where offsets start
	allowed int   // bytes that the last tick still allows
	started bool  // that place has been reached
	broken  error // why the answer was broken off: the fault, or a client that went away
}

const packSignature = "PACK"

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		a.seen(status, 0)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	n, err := a.write(p)
	if err != nil {
		a.broken = err
	}
	return n, err
}

func (a *answer) write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	written := a.skip(p)
	if written > 0 {
		if err := a.send(p[:written]); err != nil {
			return 0, err
		}
	}
	for written < len(p) {
		piece, err := a.next(p[written:])
		if err != nil {
			return written, err
		}
		if err := a.send(piece); err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// skip gives the length of what lies before the place where offsets start.
func (a *answer) skip(p []byte) int {
	if a.started {
		return 0
	}
	if !a.fault.pack {
		a.started = true
		return 0
	}
	for i, c := range p {
		switch c {
		case packSignature[a.matched]:
			a.matched++
		case packSignature[0]:
			a.matched = 1
		default:
			a.matched = 0
		}
		if a.matched == len(packSignature) {
			a.started = true
			start := max(0, i+1-len(packSignature))
			a.counted = int64(len(packSignature) - (i + 1 - start))
			return start
		}
	}
	return len(p)
}

// next takes the piece of p that may be sent now. It waits where the fault is slow or hangs.
func (a *answer) next(p []byte) ([]byte, error) {
	f := a.fault
	for _, end := range []int64{f.cut, f.hang} {
		if end == 0 {
			continue
		}
		left := end - 1 - a.counted
		if left <= 0 {
			a.flush()
			if end == f.hang {
				<-a.ctx.Done()
			}
			return nil, errBroken
		}
		p = p[:min(int64(len(p)), left)]
	}
	if f.chunk > 0 {
		if err := a.throttle(); err != nil {
			return nil, err
		}
		p = p[:min(len(p), a.allowed)]
		a.allowed -= len(p)
	}
	if at := f.flip - 1 - a.counted; f.flip > 0 && at >= 0 && at < int64(len(p)) {
		p = append([]byte(nil), p...)
		p[at] ^= 0x10
	}
	a.counted += int64(len(p))
	return p, nil
}

// throttle waits for the next tick when the last one is used up.
func (a *answer) throttle() error {
	if a.allowed > 0 {
		return nil
	}
	a.flush()
	select {
	case <-a.fault.ticks:
		a.allowed = a.fault.chunk
		return nil
	case <-a.ctx.Done():
		return errBroken
	}
}

func (a *answer) send(p []byte) error {
	a.seen(0, len(p))
	_, err := a.ResponseWriter.Write(p)
	return err
}

func (a *answer) flush() {
	// A writer that cannot flush sends at the end, which is all that is lost.
	_ = http.NewResponseController(a.ResponseWriter).Flush()
}
