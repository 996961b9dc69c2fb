package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"
	"k8s.io/utils/clock"
)

const (
	// DefaultTUFMirror is where the public sigstore keeps its trust roots.
	DefaultTUFMirror = tuf.DefaultMirror

	// retryPause is how long a failed refresh is not tried again.
	retryPause = time.Minute
	// maxWays is how many ways to the mirror keep what came by them.
	maxWays = 64
)

var errIncompleteRoot = errors.New("it has no certificate authority or no transparency log")

// TUFOptions say where trust roots come from.
type TUFOptions struct {
	// Client asks the mirror; it brings proxy, deadlines and dial policy. Required.
	Client *http.Client
	// Way names the way that a request with the context takes to the mirror, such as its proxy. Roots are kept apart for
	// each way, so that one that fails, hangs or holds back news does so to nobody who goes by another. Nil means that
	// all go the same way.
	Way func(context.Context) string
	// Mirror is the TUF repository; empty means DefaultTUFMirror.
	Mirror string
	// InitialRoot is the root.json that trust starts from; empty means the public sigstore's, which is only right
	// for its own mirror.
	InitialRoot []byte
	// Clock decides when to refresh and whether metadata has expired; nil means the system's.
	Clock clock.PassiveClock
	// Refresh is how old roots may be before they are fetched again; 0 means 24 hours.
	Refresh time.Duration
	// RefreshTimeout keeps a mirror that hangs from taking all of the caller's time while there are good roots; 0 means
	// 10 seconds. The first fetch has the caller's time.
	RefreshTimeout time.Duration
}

// TUFRoots keeps trust roots from a TUF repository in memory, fresh. It is safe for concurrent use: one caller
// fetches while the others wait. It has no background work: roots are refreshed when they are asked for. If
// refreshing fails, the last good roots serve until their own metadata expires.
type TUFRoots struct {
	options TUFOptions
	mirror  *url.URL
	ways    *lru.Cache[string, *tufWay]
}

// tufWay is what came by one way.
type tufWay struct {
	// turn is held by who reads or fetches.
	turn chan struct{}

	good     *tufState
	failed   error
	failedAt time.Time
}

// NewTUFRoots returns roots that are not fetched yet, or ErrPolicy if the options cannot be used.
func NewTUFRoots(options TUFOptions) (*TUFRoots, error) {
	if options.Client == nil {
		return nil, unusable("no HTTP client is given for the trust roots")
	}
	options.Mirror = cmp.Or(options.Mirror, DefaultTUFMirror)
	options.Refresh = cmp.Or(options.Refresh, 24*time.Hour)
	options.RefreshTimeout = cmp.Or(options.RefreshTimeout, 10*time.Second)
	if len(options.InitialRoot) == 0 {
		if options.Mirror != DefaultTUFMirror {
			return nil, unusable("mirror %q needs the root.json that its trust starts from", options.Mirror)
		}
		options.InitialRoot = tuf.DefaultRoot()
	}
	mirror, err := url.Parse(options.Mirror)
	if err != nil || mirror.Host == "" || mirror.User != nil || mirror.Scheme != "https" && mirror.Scheme != "http" {
		return nil, unusable("the mirror of the trust roots is not an http or https URL")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Way == nil {
		options.Way = func(context.Context) string { return "" }
	}
	ways, err := lru.New[string, *tufWay](maxWays)
	if err != nil {
		return nil, unusable("%v", err)
	}
	return &TUFRoots{options: options, mirror: mirror, ways: ways}, nil
}

// name says which roots these are, whatever they hold at the moment.
func (r *TUFRoots) name() string {
	sum := sha256.Sum256(r.options.InitialRoot)
	return r.options.Mirror + " " + hex.EncodeToString(sum[:])
}

// Root returns the trust roots, fetched within the context's deadline if they are missing or old. The error is
// ErrRoots or the context's.
func (r *TUFRoots) Root(ctx context.Context) (root.TrustedMaterial, error) {
	way := r.way(r.options.Way(ctx))
	select {
	case way.turn <- struct{}{}:
		defer func() { <-way.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := r.options.Clock.Now()
	if way.good != nil && now.Before(way.good.fetched.Add(r.options.Refresh)) && now.Before(way.good.expires) {
		return way.good.root, nil
	}
	if err := r.refresh(ctx, way, now); err != nil && (way.good == nil || !now.Before(way.good.expires)) {
		return nil, err
	}
	return way.good.root, nil
}

func (r *TUFRoots) way(name string) *tufWay {
	if known, ok := r.ways.Get(name); ok {
		return known
	}
	made := &tufWay{turn: make(chan struct{}, 1)}
	if earlier, found, _ := r.ways.PeekOrAdd(name, made); found {
		return earlier
	}
	return made
}

// refresh replaces the good roots by newer ones, at most once in the retry pause if that fails.
func (r *TUFRoots) refresh(ctx context.Context, way *tufWay, now time.Time) error {
	if way.failed != nil && now.Before(way.failedAt.Add(retryPause)) {
		return way.failed
	}
	bounded := ctx
	if way.good != nil && now.Before(way.good.expires) {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, r.options.RefreshTimeout)
		defer cancel()
	}
	fetched, err := r.fetch(bounded, now)
	if err == nil {
		err = fetched.notOlderThan(way.good)
	}
	switch {
	case err == nil:
		way.good, way.failed = fetched, nil
		return nil
	case ctx.Err() != nil:
		// This caller's time was up; the next one's may not be.
		return ctx.Err()
	}
	way.failed = fmt.Errorf("%w: %s", ErrRoots, printableLine(err.Error()))
	way.failedAt = now
	return way.failed
}
