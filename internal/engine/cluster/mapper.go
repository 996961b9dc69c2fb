package cluster

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// mapper knows the API server's kinds. It looks again when a kind is not known, or when a known one has turned out to
// be gone, but not more often than its tokens allow: what is missing is often missing for long.
type mapper struct {
	kinds  discovery.DiscoveryInterface
	tokens flowcontrol.PassiveRateLimiter

	// looking is held while the API server is asked, so that many who miss a kind ask once.
	looking sync.Mutex

	known    atomic.Pointer[meta.RESTMapper] // what the last look found; nil before the first
	expected atomic.Bool                     // a new kind has been announced
	outdated atomic.Bool                     // a known kind is gone
}

// looks are the tokens for one look at the API server's kinds in 5 s, and three that may follow each other at once.
func looks(now clock.PassiveClock) flowcontrol.PassiveRateLimiter {
	return flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(1./5, 3, now)
}

// expect lets the next look happen whatever the tokens say.
func (m *mapper) expect() { m.expected.Store(true) }

// doubt says that a known kind was not there.
func (m *mapper) doubt() { m.outdated.Store(true) }

// RESTMapping asks the known kinds, and once more after a look when they do not have the answer.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	seen := m.known.Load()
	if seen != nil && !m.outdated.Load() {
		found, err := (*seen).RESTMapping(kind, versions...)
		if !meta.IsNoMatchError(err) {
			return found, err
		}
	}
	fresh, err := m.look(seen)
	if err != nil {
		return nil, err
	}
	return fresh.RESTMapping(kind, versions...)
}

// look asks the API server for its kinds, unless somebody did since seen was read or the tokens are spent.
func (m *mapper) look(seen *meta.RESTMapper) (meta.RESTMapper, error) {
	m.looking.Lock()
	defer m.looking.Unlock()
	if now := m.known.Load(); now != seen || now != nil && !m.expected.Load() && !m.tokens.TryAccept() {
		return *now, nil
	}
	// Cleared before the look, so that what is said during it counts for the next one.
	m.expected.Store(false)
	m.outdated.Store(false)
	// A group whose own server is down is left out without an error: its kinds are not known meanwhile.
	groups, err := restmapper.GetAPIGroupResources(m.kinds)
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its kinds: %w", err)
	}
	fresh := restmapper.NewDiscoveryRESTMapper(groups)
	m.known.Store(&fresh)
	return fresh, nil
}
