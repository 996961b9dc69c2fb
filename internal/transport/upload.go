package transport

import (
	"io"
	"time"
)

// Upload guards what is sent against an upstream that takes no more: when nobody asks for the next bytes for the whole stall
// timeout, stop is called, which is to end the sending. Once all has been read nothing is guarded any more.
func (f *Factory) Upload(body io.Reader, stop func()) io.ReadCloser {
	u := &uploadGuard{body: body, timeout: f.options.StallTimeout, timer: time.AfterFunc(f.options.StallTimeout, stop)}
	u.timer.Stop() // The connection is not made yet.
	return u
}

type uploadGuard struct {
	body    io.Reader
	timeout time.Duration
	timer   *time.Timer
}

func (u *uploadGuard) Read(p []byte) (int, error) {
	u.timer.Stop()
	n, err := u.body.Read(p)
	if err == nil {
		u.timer.Reset(u.timeout)
	}
	return n, err
}

func (u *uploadGuard) Close() error {
	u.timer.Stop()
	return nil
}
