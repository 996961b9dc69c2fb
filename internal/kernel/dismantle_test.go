package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
)

// ownerKind is a kind with facts of its own, whose objects own something that takes its time to remove.
type ownerKind struct {
	*fakeKind
	report    kernel.Report
	retry     time.Duration
	dismantle func() (string, error)
	forgotten []client.ObjectKey
}

func (k *ownerKind) View(obj *sourcev1.GitRepository) kernel.View {
	view := k.fakeKind.View(obj)
	view.RetryInterval = k.retry
	return view
}

func (*ownerKind) Table() status.Table { return status.Table{Facts: []string{"Healthy", "Contested"}} }

func (k *ownerKind) Report(*sourcev1.GitRepository, string, error) kernel.Report { return k.report }

func (k *ownerKind) Dismantle(context.Context, *sourcev1.GitRepository) (string, error) {
	return k.dismantle()
}

func (k *ownerKind) Forget(key client.ObjectKey) { k.forgotten = append(k.forgotten, key) }

func newOwnerBench(t *testing.T, work error) (*bench, *ownerKind) {
	t.Helper()
	b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) { return "", work })
	kind := &ownerKind{fakeKind: b.kind}
	b.kernel.Kind = kind
	return b, kind
}

func TestFactsAndProgressAreReported(t *testing.T) {
	t.Parallel()
	b, kind := newOwnerBench(t, nil)
	kind.report = kernel.Report{
		Progress: "Waiting for something", Again: 5 * time.Second,
		Facts: []status.Fact{
			{Type: "Healthy", Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "Not yet"},
			{Type: "Contested", Status: metav1.ConditionTrue, Reason: "DriftContested", Message: "Somebody else"},
		},
	}
	result, err := b.reconcile(t)
	if err != nil || result.RequeueAfter != 5*time.Second {
		t.Errorf("got %+v, %v; want the time that the report names", result, err)
	}
	want := map[string]string{
		"Ready": "Unknown Progressing: Waiting for something", "Reconciling": "True Progressing: Waiting for something",
		"Healthy": "Unknown Progressing: Not yet", "Contested": "True DriftContested: Somebody else",
	}
	if diff := cmp.Diff(want, summary(b.get(t))); diff != "" {
		t.Errorf("while it goes on: -want +got:\n%s", diff)
	}

	kind.report = kernel.Report{
		Message: "Done", Again: time.Hour, Facts: []status.Fact{{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "All"}},
	}
	result, err = b.reconcile(t)
	if err != nil || result.RequeueAfter != time.Minute+time.Second {
		t.Errorf("got %+v, %v; want the interval, which is sooner", result, err)
	}
	want = map[string]string{"Ready": "True Succeeded: Done", "Healthy": "True Succeeded: All"}
	if diff := cmp.Diff(want, summary(b.get(t))); diff != "" {
		t.Errorf("in the end: -want +got:\n%s", diff)
	}
	writes := b.writes
	if _, err := b.reconcile(t); err != nil || b.writes != writes {
		t.Errorf("%d writes by a round that found nothing new, %v", b.writes-writes, err)
	}
}

func TestKindsOwnTimesAreKept(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
		again  time.Duration
		want   time.Duration
	}{
		"RetrySooner": {reason: "something else is to be looked at before", err: errors.New("failed"), again: time.Second, want: time.Second},
		"WaitSooner": {
			reason: "so it is while another object is waited for",
			err:    failure.Wait("NotReady", time.Hour, errors.New("not ready")), again: time.Second, want: time.Second,
		},
		"WaitLater": {
			reason: "the wait is over before", err: failure.Wait("NotReady", time.Second, errors.New("not ready")), want: time.Second,
		},
		"Retry": {reason: "a failure is retried after the object's own interval", err: errors.New("failed"), want: 3 * time.Second},
		"Throttled": {
			reason: "who asks for less time than that changes nothing, however often",
			err:    failure.RetryAfter("Throttled", time.Second, errors.New("too many requests")), want: 3 * time.Second,
		},
		"Busy": {
			reason: "who asks for more gets it",
			err:    failure.RetryAfter("Throttled", time.Minute, errors.New("too many requests")), want: time.Minute,
		},
		"Stall": {reason: "a stalled object is looked at when the report says so", err: failure.Stall("Wrong", errors.New("wrong")), want: 7 * time.Second},
		"Judged": {
			reason: "a conflict that was judged is a failure, not a write of our own that came too late",
			err:    failure.Retry("ApplyFailed", fmt.Errorf("apply: %w", apierrors.NewConflict(schema.GroupResource{}, "other", nil))), want: 3 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, kind := newOwnerBench(t, tc.err)
			kind.retry, kind.report.Again = 2*time.Second, 7*time.Second
			if tc.again > 0 {
				kind.report.Again = tc.again
			}
			for range 15 {
				// It has failed often enough for delays that grow to be long.
				b.kernel.Backoff.When(ctrl.Request{NamespacedName: b.key})
			}
			result, err := b.reconcile(t)
			if err != nil || result.RequeueAfter != tc.want {
				t.Errorf("%s: got %+v, %v", tc.reason, result, err)
			}
			if ready := summary(b.get(t))["Ready"]; ready == "" {
				t.Errorf("%s: nothing was reported", tc.reason)
			}
		})
	}
}

// Done implements kernel.Doer.
func (*ownerKind) Done(obj *sourcev1.GitRepository, result string) []event.Event {
	if result == "" {
		return nil
	}
	return []event.Event{event.Happened(event.About(obj, sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind)), "Did", result, "")}
}

// TestWhatWasDoneIsToldHoweverItIsReported: the next run has nothing to do, and so nothing to tell.
func TestWhatWasDoneIsToldHoweverItIsReported(t *testing.T) {
	t.Parallel()
	b, kind := newOwnerBench(t, nil)
	kind.work = func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
		b.edit(t, func(obj *sourcev1.GitRepository) { obj.Spec.URL += "/y" })
		return "removed", nil
	}
	if _, err := b.reconcile(t); err != nil || len(b.events.events) != 1 || b.events.events[0].Reason != "Did" || b.kind.settled != 0 {
		t.Errorf("got %+v, %v; settled %d times", b.events.events, err, b.kind.settled)
	}
}

func TestDismantlingIsReportedUntilItIsDone(t *testing.T) {
	t.Parallel()
	b, kind := newOwnerBench(t, nil)
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(t.Context(), b.get(t)); err != nil {
		t.Fatal(err)
	}
	kind.dismantle = func() (string, error) {
		return "", failure.Wait("DeletionBlocked", time.Minute, errors.New("there is data"))
	}
	result, err := b.reconcile(t)
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("got %+v, %v", result, err)
	}
	if ready := summary(b.get(t))["Ready"]; ready != "False DeletionBlocked: there is data" || kind.finalized != 0 {
		t.Errorf("Ready %q, finalized %d times", ready, kind.finalized)
	}

	told := len(b.events.events)
	kind.dismantle = func() (string, error) { return "removed", nil }
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	err = env.Client.Get(t.Context(), b.key, &sourcev1.GitRepository{})
	if !apierrors.IsNotFound(err) || kind.finalized != 1 || len(b.events.events) != told+2 {
		t.Errorf("%v, finalized %d times, %d new events", err, kind.finalized, len(b.events.events)-told)
	}
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]client.ObjectKey{b.key}, kind.forgotten); diff != "" {
		t.Errorf("forgotten: -want +got:\n%s", diff)
	}
}
