package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// listless is an API server that answers no list of members while it is away.
type listless struct {
	next http.RoundTripper
	away *atomic.Bool
}

func (l listless) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); !l.away.Load() || !query.Has("labelSelector") || query.Has("watch") {
		return l.next.RoundTrip(request)
	}
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcdserver: leader changed"}`)),
	}, nil
}

// TestListsFailAfterRestart: what cannot be watched at first is not applied again for that; it is once an interval has
// gone by, as long as nobody can tell how it is.
func TestListsFailAfterRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1", "c", "1"))
	r.settle("it is installed", settled)

	var away atomic.Bool
	r.wrap = func(next http.RoundTripper) http.RoundTripper { return listless{next, &away} }
	away.Store(true)
	r.start(nil)
	unwatched := func(out engine.Outcome) bool { return len(out.Unwatched) == 1 }
	if calls := r.calls(func() { r.settle("it is told that nobody can watch", unwatched) }); calls["apply"] > 0 {
		t.Errorf("unchanged objects were applied: %v", calls)
	}
	out := r.round()
	if out.Again <= 0 || out.Again > modulesv1.DefaultInterval {
		t.Errorf("the next look is after %s", out.Again)
	}
	for i := range 2 {
		r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultInterval))
		if calls := r.calls(func() { r.round() }); calls["apply"] != 3 {
			t.Errorf("interval %d: each of three objects is applied once: %v", i, calls)
		}
		if calls := r.calls(func() { r.round() }); calls["apply"] > 0 {
			t.Errorf("interval %d: and not twice: %v", i, calls)
		}
	}

	away.Store(false)
	testenv.Eventually(t, "watch again", func(context.Context) (bool, string) {
		problems := r.watcher.Problems(r.in.Key())
		return len(problems) == 0, fmt.Sprint(problems)
	})
	r.synced()
	r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultInterval))
	if calls := r.calls(func() { r.round() }); len(calls) > 0 {
		t.Errorf("what is watched costs nothing: %v", calls)
	}
}
