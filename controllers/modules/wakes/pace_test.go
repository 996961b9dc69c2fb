package wakes

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
)

// rounds are when rounds come of changes at these times, each after the start, of which some are drift.
func rounds(changes []time.Duration, drift ...time.Duration) []time.Duration {
	start := time.Unix(1_700_000_000, 0)
	var came []time.Duration
	var p pace
	waiting := false
	goUntil := func(now time.Time) {
		for waiting && !p.due().After(now) {
			at := p.due()
			p.goes(at)
			came, waiting = append(came, at.Sub(start)), false
		}
	}
	for _, change := range changes {
		goUntil(start.Add(change))
		if p.hear(start.Add(change), slices.Contains(drift, change)) {
			waiting = true
		}
	}
	goUntil(start.Add(24 * time.Hour))
	return came
}

// every are changes at equal distances, up to the end.
func every(step, end time.Duration) []time.Duration {
	var changes []time.Duration
	for at := time.Duration(0); at <= end; at += step {
		changes = append(changes, at)
	}
	return changes
}

func TestAChangeIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	if got := rounds([]time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond}); len(got) != 1 || got[0] != wakeDelay {
		t.Errorf("rounds at %v", got)
	}
}

// TestWhatNeverRestsIsLookedAtSometimes: an object that somebody writes a hundred times a second.
func TestWhatNeverRestsIsLookedAtSometimes(t *testing.T) {
	t.Parallel()
	const end = 2 * time.Minute
	got := rounds(every(10*time.Millisecond, end))
	for i := 1; i < len(got); i++ {
		if distance := got[i] - got[i-1]; distance > maxWakeDistance || i > 1 && i < len(got)-1 && distance < got[i-1]-got[i-2] {
			t.Errorf("rounds %s apart at %s", distance, got[i])
		}
	}
	if len(got) > 20 || len(got) < 12 {
		t.Errorf("%d rounds: %v", len(got), got)
	}
	if last := got[len(got)-1]; last < end || last > end+wakeSettle {
		t.Errorf("the last change, at %s, is seen at %s", end, last)
	}
}

// TestAfterARestAChangeIsSeenAtOnceAgain: also what comes right after the noise is not left for long.
func TestAfterARestAChangeIsSeenAtOnceAgain(t *testing.T) {
	t.Parallel()
	noise := every(10*time.Millisecond, time.Minute)
	for name, tc := range map[string]struct {
		reason      string
		after, most time.Duration
	}{
		"Soon":  {"it settles", 2 * time.Second, wakeSettle},
		"Later": {"nothing is left of the noise", 30 * time.Second, wakeDelay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := time.Minute + tc.after
			got := rounds(append(slices.Clip(noise), change))
			if last := got[len(got)-1]; last < change || last > change+tc.most {
				t.Errorf("%s: a change at %s is seen at %s", tc.reason, change, last)
			}
		})
	}
}

// TestDriftIsSeenSoonInAllTheNoise: an object of the release is changed while another one never rests.
func TestDriftIsSeenSoonInAllTheNoise(t *testing.T) {
	t.Parallel()
	noise := every(10*time.Millisecond, 2*time.Minute)
	for _, drift := range []time.Duration{time.Second, 61 * time.Second, 62500 * time.Millisecond, 100 * time.Second} {
		got := rounds(noise, drift)
		if next := got[slices.IndexFunc(got, func(at time.Duration) bool { return at >= drift })]; next > drift+maxDriftDistance {
			t.Errorf("drift at %s is seen at %s", drift, next)
		}
	}
	if got := rounds(noise, noise...); len(got) > 125 {
		t.Errorf("%d rounds for drift that never rests", len(got))
	}
}

// TestOnlyWhatCountsWakes: what others write beside the release matters where the health is in it.
func TestOnlyWhatCountsWakes(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	configMap, deployment := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for name, tc := range map[string]struct {
		reason      string
		kind        schema.GroupVersionKind
		event       watch.Event
		expressions []modulesv1.HealthExpression
		want        bool
	}{
		"Modified":   {"drift counts in every kind", configMap, watch.Modified, nil, true},
		"Deleted":    {"so does an object that goes", configMap, watch.Deleted, nil, true},
		"Annotation": {"a ConfigMap is healthy by being there", configMap, watch.Touched, nil, false},
		"Status":     {"a Deployment is not", deployment, watch.Touched, nil, true},
		"Expression": {"nor is a ConfigMap of which a template says so", configMap, watch.Touched, []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "ConfigMap"}}, true},
		"Other":      {"what it says of another kind is nothing", configMap, watch.Touched, []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "Secret"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wakes := New()
			wakes.Judge(key, tc.expressions...)
			wakes.Notify("a/b", cluster.Ref{GVK: tc.kind}, tc.event)
			if _, woken := wakes.early[key]; woken != tc.want {
				t.Errorf("%s: woken %t", tc.reason, woken)
			}
		})
	}
}

// TestWakesReachTheQueue: those that came before it, and those after.
func TestWakesReachTheQueue(t *testing.T) {
	t.Parallel()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	wakes := New()
	wakes.Wake(types.NamespacedName{Name: "early"})
	if err := wakes.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"early", "later"} {
		wakes.Wake(types.NamespacedName{Name: "later"})
		request, _ := queue.Get()
		if request.Name != want {
			t.Errorf("got %s, want %s", request.Name, want)
		}
		queue.Done(request)
	}
	wakes.Forget(types.NamespacedName{Name: "later"})
	if len(wakes.paces) != 0 {
		t.Errorf("%d paces are left", len(wakes.paces))
	}
}
