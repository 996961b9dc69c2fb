package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// slow lets each request of the verb take a minute of the rig's clock.
func (r *rig) slow(verb string) {
	var mu sync.Mutex
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onCall = func(asked string) {
		if asked == verb {
			mu.Lock()
			defer mu.Unlock()
			r.clock.SetTime(r.clock.Now().Add(time.Minute))
		}
	}
}

// TestRoundsEnd: whatever each request takes, a round begins no more of them after its time, and the next one goes on
// where it ended.
func TestRoundsEnd(t *testing.T) {
	t.Parallel()
	const count = 40
	files := map[string]string{}
	for i := range count {
		files[fmt.Sprintf("%02d.yaml", i)] = configMap(fmt.Sprintf("cm-%02d", i), "1")
	}
	r := newRig(t)
	rounds := func(verb string, over func(engine.Outcome) bool) {
		t.Helper()
		r.slow(verb)
		late := 0
		calls := r.calls(func() {
			testenv.Eventually(t, "it comes to its end", func(ctx context.Context) (bool, string) {
				var one map[string]int
				var out engine.Outcome
				var err error
				one = r.calls(func() { out, err = r.engine.Reconcile(ctx, r.in) })
				if one[verb] > count/2 {
					t.Fatalf("%s: %d in one round", verb, one[verb])
				}
				if err != nil {
					if found := failure.Of(err); found.Reason != modulesv1.ProgressingReason || found.Disposition != failure.Waits || found.After == 0 {
						t.Fatalf("round: %v (%+v)", err, found)
					}
					late++
					return false, err.Error()
				}
				return over(out), fmt.Sprintf("%+v", out)
			})
		})
		// What the watch has not seen go yet may be asked for twice.
		if calls[verb] < count || calls[verb] > 2*count || late == 0 {
			t.Errorf("%s: %v, %d rounds ended early", verb, calls, late)
		}
	}
	r.in.Target = r.target("1.0.0", files)
	rounds("apply", settled)
	r.synced()
	r.in.Verify = true
	r.slow("apply")
	calls := r.calls(func() {
		testenv.Eventually(t, "all is verified", func(ctx context.Context) (bool, string) {
			out, err := r.engine.Reconcile(ctx, r.in)
			r.in.Verify = false
			return err == nil && settled(out), fmt.Sprint(err)
		})
	})
	// The daily verification may fall due in these minutes; it is the only one besides.
	if calls["apply"] < count || calls["apply"] > 2*count {
		t.Errorf("verified by %v", calls)
	}
	r.in.Deleting, r.in.Target = true, nil
	rounds("delete", done)
}

// TestHangingRequestsEnd: a request that is never answered, as with a webhook that hangs, ends by itself. The other
// members are applied, and what hung is told.
func TestHangingRequestsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hanging := &hanging{name: "cm-b"}
	r.wrap, r.timeout = func(next http.RoundTripper) http.RoundTripper { hanging.next = next; return hanging }, 3*time.Second
	r.start(nil)
	r.in.Target = r.target("1.0.0", configMapFiles("cm-a", "1", "cm-b", "1", "cm-c", "1"))
	testenv.Eventually(t, "the others are applied", func(ctx context.Context) (bool, string) {
		_, err := r.engine.Reconcile(ctx, r.in)
		return err != nil && strings.Contains(err.Error(), "cm-b: the API server, or a webhook that it asks, does not answer in time") &&
			r.get(configMaps, "cm-a") != nil && r.get(configMaps, "cm-c") != nil, fmt.Sprint(err)
	})
	if member(r, "cm-a").UID == "" || member(r, "cm-b").State != modulesv1.MemberPending {
		t.Errorf("members: %v", r.members())
	}
	hanging.set("")
	r.settle("it is installed", settled)
}

// hanging never answers a write of the object of the name.
type hanging struct {
	next http.RoundTripper
	mu   sync.Mutex
	name string
}

func (h *hanging) set(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.name = name
}

func (h *hanging) RoundTrip(request *http.Request) (*http.Response, error) {
	h.mu.Lock()
	name := h.name
	h.mu.Unlock()
	if name != "" && request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/"+name) {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	return h.next.RoundTrip(request)
}
