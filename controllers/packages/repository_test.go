package packages

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
)

// TestTheTimeOfALookIsWrittenWithItsNews: a round that finds nothing new is to leave the status as it is.
func TestTheTimeOfALookIsWrittenWithItsNews(t *testing.T) {
	t.Parallel()
	then, now := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_060, 0)
	for name, tc := range map[string]struct {
		reason string
		change func(*packagesv1.Repository, *round)
		want   time.Time
	}{
		"Idle":     {"nothing has moved", func(*packagesv1.Repository, *round) {}, then},
		"First":    {"nothing was known", func(obj *packagesv1.Repository, _ *round) { obj.Status = packagesv1.RepositoryStatus{} }, now},
		"Head":     {"somebody pushed", func(_ *packagesv1.Repository, r *round) { r.snapshot.Head = "b" }, now},
		"Change":   {"a draft was begun", func(_ *packagesv1.Repository, r *round) { maps.Copy(r.snapshot.Packages, crowd(2).Packages) }, now},
		"URL":      {"the GitRepository was edited", func(_ *packagesv1.Repository, r *round) { r.url = "https://other.example/a" }, now},
		"Spec":     {"the spec was edited", func(obj *packagesv1.Repository, _ *round) { obj.Generation++ }, now},
		"Asked":    {"somebody waits for the look", func(obj *packagesv1.Repository, _ *round) { obj.Annotations[meta.ReconcileRequestAnnotation] = "two" }, now},
		"Recovers": {"it could not be read before", func(obj *packagesv1.Repository, _ *round) { conditions.MarkFalse(obj, "Ready", "SyncFailed", "no") }, now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &repositories{shared: Shared{Shell: kernel.Shell{Clock: clocktesting.NewFakePassiveClock(now)}}}
			obj := &packagesv1.Repository{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{meta.ReconcileRequestAnnotation: "one"}}}
			r := round{url: "https://git.example/a", snapshot: crowd(1)}
			r.snapshot.Head = "a"
			k.Report(obj, r, nil)
			obj.Status.LastSyncTime = new(metav1.NewTime(then))
			obj.Status.ObservedGeneration, obj.Status.LastHandledReconcileAt = 1, "one"
			conditions.MarkTrue(obj, "Ready", "Succeeded", "1 package at a")
			tc.change(obj, &r)
			k.Report(obj, r, nil)
			if got := obj.Status.LastSyncTime.Time; !got.Equal(tc.want) {
				t.Errorf("%s: the time is %s, not %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestReadyCountsInWords of which one has no plural.
func TestReadyCountsInWords(t *testing.T) {
	t.Parallel()
	k := &repositories{shared: Shared{Shell: kernel.Shell{Clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))}}}
	none := &pkgrepo.Snapshot{}
	for want, snapshot := range map[string]*pkgrepo.Snapshot{
		"0 packages at an empty branch": none, "1 package at an empty branch": crowd(1),
		"1 package at an empty branch; 1 open change without an object, as a package has more than 100":  crowd(101),
		"1 package at an empty branch; 2 open changes without an object, as a package has more than 100": crowd(102),
	} {
		if got := k.Report(&packagesv1.Repository{}, round{snapshot: snapshot}, nil).Message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWhatIsGoneIsToldAlsoWhereNotAllIsShown: no later look finds it, as it is gone.
func TestWhatIsGoneIsToldAlsoWhereNotAllIsShown(t *testing.T) {
	t.Parallel()
	before, after := &packagesv1.Repository{}, &packagesv1.Repository{}
	conditions.MarkFalse(after, meta.ReadyCondition, meta.FailedReason, "no answer")
	r := round{pruned: pruned{gone: []pkgrepo.Leftover{{Ref: "refs/heads/drafts/app/v1"}}}}
	var told []string
	for _, one := range (&repositories{}).Events(before, after, r, errors.New("no answer")) {
		told = append(told, one.Reason)
	}
	if len(told) != 2 || told[1] != packagesv1.HistoryPrunedReason {
		t.Errorf("it tells of %v", told)
	}
}
