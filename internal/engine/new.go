package engine

import (
	"cmp"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/engine/watch"
	"sluice.dev/sluice/internal/fair"
)

// Parts are what an Engine is made of; all are required. The Watcher has to be made with Label, LabelValue,
// ManagerPrefix and cluster.Fingerprint.
type Parts struct {
	Connector *cluster.Connector
	Watcher   *watch.Watcher
	Cache     *fetch.Cache
	Builder   *build.Builder
	Records   Records
}

// Observer learns what the engine does. Its methods are called from many goroutines.
type Observer interface {
	// Did says that an action of a round ended, such as apply or heal, after how long, and how.
	Did(action string, took time.Duration, err error)
	// Rendered says that a release was rendered, rather than known from before.
	Rendered(took time.Duration, err error)
}

// Options tune an Engine. Zero values mean the defaults.
type Options struct {
	// Clock is the time that attempts, verification and back-off go by. Default: the real one.
	Clock clock.PassiveClock
	// Parallel is how many members of one installation are worked on at once. Default 8.
	Parallel int
	// RenderBytes is what rendered objects may take of the memory, all rounds together; a round whose turn does not come
	// within RenderPatience waits for the next one. Defaults 480 MiB and 10 s.
	RenderBytes    int64
	RenderPatience time.Duration
	// HealthCost is what health expressions may cost in a round, in CEL's units of work, before it leaves the rest to the
	// next one. Default 2,000,000: about a second.
	HealthCost uint64
	// Observer may be nil.
	Observer Observer
}

// New returns an Engine. The error says which part is missing.
func New(parts Parts, options Options) (*Engine, error) {
	if parts.Connector == nil || parts.Watcher == nil || parts.Cache == nil || parts.Builder == nil || parts.Records == nil {
		return nil, errors.New("an engine needs a connector, a watcher, a cache, a builder and records")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	options.Parallel = cmp.Or(options.Parallel, 8)
	options.RenderBytes = cmp.Or(options.RenderBytes, 480<<20)
	options.RenderPatience = cmp.Or(options.RenderPatience, 10*time.Second)
	options.HealthCost = cmp.Or(options.HealthCost, 2_000_000)
	known, err := lru.New[string, rendered](maxRenders)
	if err != nil {
		return nil, err
	}
	library, err := health.NewLibrary(0)
	if err != nil {
		return nil, err
	}
	conventions, err := library.Checker(nil)
	if err != nil {
		return nil, err
	}
	return &Engine{
		parts: parts, options: options, clock: options.Clock,
		library: library, conventions: conventions,
		renders: &renders{
			cache: parts.Cache, builder: parts.Builder, clock: options.Clock, observer: options.Observer, known: known,
			room: fair.New(options.RenderBytes, maxQueue), share: options.RenderBytes / rendersAtOnce, patience: options.RenderPatience,
		},
	}, nil
}
