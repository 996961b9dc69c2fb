package transport

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// ErrStalled says that an upstream sent nothing for the whole stall timeout.
var ErrStalled = errors.New("upstream sends no more data")

// Body guards a body against an upstream that falls silent: when a single Read lasts longer than the stall
// timeout, the body is closed and ErrStalled returned.
func (f *Factory) Body(body io.ReadCloser) io.ReadCloser {
	b := &stallGuard{body: body, timeout: f.options.StallTimeout}
	b.timer = time.AfterFunc(b.timeout, b.expire)
	b.timer.Stop()
	return b
}

type stallGuard struct {
	body    io.ReadCloser
	timeout time.Duration
	timer   *time.Timer
	expired atomic.Bool
}

func (b *stallGuard) expire() {
	b.expired.Store(true)
	_ = b.body.Close() // Read reports what matters: the stall.
}

func (b *stallGuard) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
	n, err := b.body.Read(p)
	b.timer.Stop()
	if err != nil && b.expired.Load() {
		return n, fmt.Errorf("%w for %s", ErrStalled, b.timeout)
	}
	return n, err
}

func (b *stallGuard) Close() error {
	b.timer.Stop()
	return b.body.Close()
}
