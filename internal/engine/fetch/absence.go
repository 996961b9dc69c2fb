package fetch

import (
	"errors"
	"math"
	"time"
)

const (
	// firstDelay and maxDelay bound how long an artifact that could not be had is left alone. A source that is back is
	// noticed within the latter even if nobody tells of it.
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	// maxAbsences bounds what is remembered of such artifacts. One that is forgotten is asked for as if for the first time.
	maxAbsences = 4096
)

// absence is an artifact that could not be had when it was asked for last.
type absence struct {
	err   error
	delay time.Duration
	until time.Time
}

// missed remembers why there is no artifact, and leaves it alone twice as long as the last time, or as long as the server
// asks; what cannot be unpacked for good.
func (c *Cache) missed(a Artifact, err error) time.Duration {
	delay := firstDelay
	if before, ok := c.absent.Get(a); ok {
		delay = 2 * before.delay
	}
	if asked, ok := errors.AsType[*busy](err); ok {
		delay = max(delay, asked.after)
	}
	delay = min(delay, maxDelay)
	if isVerdict(err) {
		delay = math.MaxInt64
	}
	c.absent.Add(a, absence{err: err, delay: delay, until: c.options.Clock.Now().Add(delay)})
	return delay
}

// busy is the error of a server that asks to be left alone for some time.
type busy struct {
	error

	after time.Duration
}

func (b *busy) Unwrap() error { return b.error }
