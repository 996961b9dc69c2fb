package packages_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// recorded is a world of ten targets, with nothing that fails.
func recorded(t *testing.T, guard *packagesv1.DeletionGuard) (*world, *failing) {
	t.Helper()
	t.Parallel()
	w, faults := newWorld(t, 1, guard)
	faults.isOff = true
	for i := range 10 {
		w.leads[fmt.Sprint(i)] = fmt.Sprintf("place-%d", i)
	}
	w.round()
	w.later(time.Minute)
	w.records(10, 0, 0)
	return w, faults
}

// lose takes targets away, and looks at the set a minute later.
func (w *world) loses(names ...string) {
	w.Helper()
	for _, name := range names {
		delete(w.leads, name)
	}
	w.later(time.Minute)
}

// later looks at the set after some time.
func (w *world) later(d time.Duration) {
	w.Helper()
	w.now.SetTime(w.now.Now().Add(d))
	w.round()
}

// records checks the record: the targets that are accepted, those that are gone, and the variants that stay without one.
func (w *world) records(targets, gone int32, kept int) {
	w.Helper()
	record := w.set.Status.DeletionGuard
	if record.Targets != targets || record.Gone != gone || len(record.Variants) != kept || (record.Digest != "") != (kept > 0) {
		w.Errorf("the record is %+v, want %d targets, %d gone and %d kept", record, targets, gone, kept)
	}
}

// TestAnEditIsComparedWithWhatWasThereBefore: it accepts what it leaves, unless it takes too much away itself.
func TestAnEditIsComparedWithWhatWasThereBefore(t *testing.T) {
	w, _ := recorded(t, hasty(50))
	w.loses("0", "1", "2", "3")
	w.records(10, 4, 0)
	w.set.Generation++
	w.loses("4", "5")
	w.records(10, 4, 2)
	w.leads["4"], w.leads["5"] = "place-4", "place-5"
	w.later(0)
	w.records(6, 0, 0)
	w.loses("4", "5", "6")
	w.later(0)
	w.records(6, 3, 0)
}

// TestAnAcknowledgementThatIsLateAllowsNothing: the variants whose deletion it names have their targets again, and lose them once more.
func TestAnAcknowledgementThatIsLateAllowsNothing(t *testing.T) {
	w, _ := recorded(t, hasty(100))
	w.loses("0", "1")
	w.records(10, 0, 2)
	digest := w.set.Status.DeletionGuard.Digest
	w.leads["0"], w.leads["1"] = "place-0", "place-1"
	w.later(time.Minute)
	w.records(10, 0, 0)
	w.set.Annotations = map[string]string{packagesv1.AllowDeletionAnnotation: digest}
	w.loses("0", "1")
	w.records(10, 0, 2)
	w.set.Annotations[packagesv1.AllowDeletionAnnotation] = w.set.Status.DeletionGuard.Digest
	w.later(time.Minute)
	if left := len(w.variants()); left != 8 {
		t.Errorf("%d variants are left, want 8", left)
	}
}

// TestDeletionsThatFailCountAsDone: as it is not known whether they were.
func TestDeletionsThatFailCountAsDone(t *testing.T) {
	w, faults := recorded(t, hasty(50))
	faults.fails = http.MethodDelete
	w.loses("0", "1", "2")
	w.records(10, 3, 0)
	w.later(0)
	w.records(13, 6, 0)
	faults.fails = ""
	w.later(0)
	w.records(16, 6, 3) // Nothing goes without a person.
	if left := len(w.variants()); left != 10 {
		t.Errorf("%d variants are left, want 10", left)
	}
}

// TestATargetThatComesBackInTimeKeepsItsVariant: the grace period begins anew each time.
func TestATargetThatComesBackInTimeKeepsItsVariant(t *testing.T) {
	w, _ := recorded(t, &packagesv1.DeletionGuard{})
	before := w.variants()
	w.loses("0")
	w.later(9 * time.Minute)
	w.leads["0"] = ""
	w.later(time.Minute) // It is back, though with a problem.
	w.loses("0")
	w.later(9 * time.Minute)
	w.leads["0"] = "place-0"
	w.later(time.Minute)
	w.records(10, 0, 0)
	after := w.variants()
	for name, v := range before {
		if now := after[name]; now == nil || now.UID != v.UID || now.Annotations[packagesv1.TargetGoneAnnotation] != "" {
			t.Errorf("%s is not what it was: %+v", name, now)
		}
	}
	w.loses("0")
	w.later(10 * time.Minute)
	w.records(10, 1, 0)
	if left := len(w.variants()); left != 9 {
		t.Errorf("%d variants are left, want 9", left)
	}
}
