package engine

import (
	"context"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/engine/cluster"
)

const (
	// maxFailures is how many renders are remembered to have failed.
	maxFailures = 1024
	// firstFailure is how long it is taken for granted that a render would fail again; it doubles up to lastFailure.
	firstFailure = 10 * time.Second
	lastFailure  = 10 * time.Minute
)

// failures remembers renders that failed: the same input fails again, and may have taken its time to do so. That the
// process which builds was short of something can pass, so that all are tried again, later and later.
type failures struct{ known *lru.Cache[string, failed] }

type failed struct {
	err   error
	delay time.Duration
	until time.Time
}

func newFailures() failures {
	known, _ := lru.New[string, failed](maxFailures) // Only a size of zero is an error.
	return failures{known}
}

// of is how the render failed, until its time has come again.
func (f failures) of(name string, now time.Time) error {
	if last, ok := f.known.Get(name); ok && now.Before(last.until) {
		return last.err
	}
	return nil
}

// add remembers how a render ended.
func (f failures) add(name string, err error, now time.Time) {
	if err == nil {
		f.known.Remove(name)
		return
	}
	last, _ := f.known.Get(name)
	delay := min(max(2*last.delay, firstFailure), lastFailure)
	f.known.Add(name, failed{err: err, delay: delay, until: now.Add(delay)})
}

// lasting says that the input is why a render failed, as far as it can be told: neither what it was fetched from, nor
// the API server, nor the caller's haste.
func lasting(ctx context.Context, err error) bool {
	var (
		staged *StageError
		answer *cluster.AnswerError
	)
	return ctx.Err() == nil && errors.As(err, &staged) && staged.Stage == StageBuild && !errors.As(err, &answer) && !errors.Is(err, errBusy)
}
