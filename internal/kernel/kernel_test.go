package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

const finalizer = "finalizers.fluxcd.io"

// staged makes an error one of the stage "fetch".
func staged(err error) error { return failure.At("fetch", err) }

// fakeKind is the smallest kind: its work is a function of the test.
type fakeKind struct {
	work      func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error)
	finalized int
	settled   int
}

func (*fakeKind) New() *sourcev1.GitRepository { return &sourcev1.GitRepository{} }

func (*fakeKind) View(obj *sourcev1.GitRepository) kernel.View {
	return kernel.View{
		Suspended: obj.Spec.Suspend, Interval: obj.Spec.Interval.Duration,
		ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

func (*fakeKind) Table() status.Table {
	return status.Table{
		Stages:   map[failure.Stage]status.Failure{"fetch": {Condition: sourcev1.FetchFailedCondition, Reason: sourcev1.GitOperationFailedReason}},
		Stored:   sourcev1.ArtifactInStorageCondition,
		Outdated: sourcev1.ArtifactOutdatedCondition,
		Summary: []string{
			sourcev1.FetchFailedCondition, sourcev1.ArtifactOutdatedCondition, sourcev1.ArtifactInStorageCondition,
			meta.StalledCondition, meta.ReconcilingCondition,
		},
	}
}

func (k *fakeKind) Work(ctx context.Context, obj *sourcev1.GitRepository, announce kernel.Announce) (string, error) {
	return k.work(ctx, obj, announce)
}

func (*fakeKind) Report(obj *sourcev1.GitRepository, result string, err error) kernel.Report {
	if err == nil {
		obj.Status.ContentConfigChecksum = result
	}
	return kernel.Report{Standing: status.Standing{Stored: obj.Status.ContentConfigChecksum != ""}, Message: "made " + result}
}

func (*fakeKind) Events(before, after *sourcev1.GitRepository, result string, err error) []event.Event {
	about := event.About(after, sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind))
	switch {
	case err != nil:
		return []event.Event{event.Failed(about, "", err, "")}
	case before.Status.ContentConfigChecksum != result:
		return []event.Event{event.Stored(about, "NewArtifact", event.Artifact{Revision: result}, "made "+result)}
	default:
		return nil
	}
}

func (k *fakeKind) Settle(context.Context, *sourcev1.GitRepository, string) error {
	k.settled++
	return nil
}

func (k *fakeKind) Finalize(context.Context, *sourcev1.GitRepository) error {
	k.finalized++
	return nil
}

// emitted collects events.
type emitted struct {
	mu     sync.Mutex
	events []event.Event
}

func (e *emitted) Emit(ev event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, ev)
}

type noDurations struct{}

func (noDurations) Observe(client.Object, time.Duration) {}
func (noDurations) Forget(client.Object)                 {}

// bench is one kernel with one object on the real API server.
type bench struct {
	kernel *kernel.Kernel[*sourcev1.GitRepository, string]
	kind   *fakeKind
	events *emitted
	key    client.ObjectKey
	writes int
	called []ctrl.Request
	clock  *clocktesting.FakePassiveClock
}

func newBench(t *testing.T, work func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error)) *bench {
	t.Helper()
	b := &bench{kind: &fakeKind{work: work}, events: &emitted{}, clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))}
	counting, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	b.kernel = &kernel.Kernel[*sourcev1.GitRepository, string]{
		Kind: b.kind, Finalizer: finalizer, Backoff: kernel.NewBackoff(time.Millisecond, time.Minute),
		Turns: kernel.NewTurns(2, func(req ctrl.Request) { b.called = append(b.called, req) }),
	}
	b.kernel.Shell = kernel.Shell{
		Client: interceptor.NewClient(counting, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				b.writes++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}),
		Reader: counting, FieldOwner: "kernel-test", RequeueDependency: 30 * time.Second,
		Jitter: func(d time.Duration) time.Duration { return d + time.Second },
		Clock:  b.clock,
		Events: b.events, Durations: noDurations{},
	}
	obj := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.NewNamespace(t), Name: "subject"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/x", Interval: metav1.Duration{Duration: time.Minute}},
	}
	if err := env.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	b.key = client.ObjectKeyFromObject(obj)
	return b
}

func (b *bench) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return b.kernel.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key})
}

func (b *bench) get(t *testing.T) *sourcev1.GitRepository {
	t.Helper()
	obj := &sourcev1.GitRepository{}
	if err := env.Client.Get(t.Context(), b.key, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func (b *bench) edit(t *testing.T, change func(*sourcev1.GitRepository)) {
	t.Helper()
	obj := b.get(t)
	change(obj)
	if err := env.Client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func makes(result string) func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
	return func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) { return result, nil }
}

// summary is what tests compare of an object's conditions.
func summary(obj *sourcev1.GitRepository) map[string]string {
	found := map[string]string{}
	for _, c := range obj.Status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return found
}

func TestSuccessIsOneWriteAndNoOpIsNone(t *testing.T) {
	t.Parallel()
	b := newBench(t, makes("v1"))
	result, err := b.reconcile(t)
	if err != nil || result.RequeueAfter != time.Minute+time.Second {
		t.Fatalf("got %+v, %v; want the jittered interval", result, err)
	}
	obj := b.get(t)
	want := map[string]string{"Ready": "True Succeeded: made v1", "ArtifactInStorage": "True Succeeded: made v1"}
	if diff := cmp.Diff(want, summary(obj)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if obj.Status.ObservedGeneration != obj.Generation || b.writes != 1 || len(b.events.events) != 1 || b.kind.settled != 1 {
		t.Errorf("observedGeneration %d, %d writes, %d events, settled %d", obj.Status.ObservedGeneration, b.writes, len(b.events.events), b.kind.settled)
	}

	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if again := b.get(t); again.ResourceVersion != obj.ResourceVersion || b.writes != 1 || len(b.events.events) != 1 {
		t.Errorf("a no-op wrote: resourceVersion %s -> %s, %d writes, %d events", obj.ResourceVersion, again.ResourceVersion, b.writes, len(b.events.events))
	}
}

func TestNothingIsDoneForAnObjectOlderThanItsReport(t *testing.T) {
	t.Parallel()
	worked := 0
	b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
		worked++
		return "v1", nil
	})
	var cached *sourcev1.GitRepository
	server, _ := b.kernel.Client.(client.WithWatch)
	b.kernel.Client = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if into, ok := obj.(*sourcev1.GitRepository); ok && cached != nil {
				cached.DeepCopyInto(into)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	b.edit(t, func(obj *sourcev1.GitRepository) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	requested := b.get(t)
	if _, err := b.reconcile(t); err != nil || worked != 2 {
		t.Fatalf("worked %d times, %v", worked, err)
	}
	writes := b.writes

	// The cache has the request, and not the answer to it.
	cached = requested
	result, err := b.reconcile(t)
	if err != nil || worked != 2 || b.writes != writes || result.RequeueAfter == 0 || result.RequeueAfter >= time.Minute {
		t.Errorf("an answered request: worked %d times, %d more writes, %+v, %v; want it looked at again soon",
			worked, b.writes-writes, result, err)
	}
	// A cache that stays behind, as after a restored backup, holds nothing up for good.
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	if _, err := b.reconcile(t); err != nil || worked != 3 {
		t.Errorf("an hour later: worked %d times, %v", worked, err)
	}
	cached = nil
	if _, err := b.reconcile(t); err != nil || worked != 4 {
		t.Errorf("with a cache that has caught up: worked %d times, %v", worked, err)
	}
}

func TestAnnouncedChangeIsTwoWrites(t *testing.T) {
	t.Parallel()
	var during map[string]string
	var b *bench
	b = newBench(t, func(ctx context.Context, _ *sourcev1.GitRepository, announce kernel.Announce) (string, error) {
		if err := announce(ctx, status.Progress{Message: "building", NewRevision: "new upstream revision 'v2'"}); err != nil {
			return "", err
		}
		during = summary(b.get(t))
		return "v2", nil
	})
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Reconciling":      "True Progressing: building",
		"Ready":            "Unknown Progressing: building",
		"ArtifactOutdated": "True NewRevision: new upstream revision 'v2'",
	}
	if diff := cmp.Diff(want, during); diff != "" {
		t.Errorf("while it works: -want +got:\n%s", diff)
	}
	after := map[string]string{"Ready": "True Succeeded: made v2", "ArtifactInStorage": "True Succeeded: made v2"}
	if diff := cmp.Diff(after, summary(b.get(t))); diff != "" || b.writes != 2 {
		t.Errorf("%d writes; -want +got:\n%s", b.writes, diff)
	}
}

func TestFailuresDecideWhatFollows(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		err        error
		conditions map[string]string
		observed   bool
		after      time.Duration
		retried    bool
	}{
		"Retried": {
			reason:  "a plain error is retried with backoff and does not count as observed",
			err:     staged(errors.New("connection refused")),
			retried: true,
			conditions: map[string]string{
				"FetchFailed": "True GitOperationFailed: connection refused", "Ready": "False GitOperationFailed: connection refused",
				"Reconciling": "True ProgressingWithRetry: reconciliation in progress",
			},
		},
		"Stalled": {
			reason:   "a stall is final until the spec changes",
			err:      staged(failure.Stall("URLInvalid", errors.New("bad url"))),
			observed: true,
			conditions: map[string]string{
				"FetchFailed": "True URLInvalid: bad url", "Ready": "False URLInvalid: bad url", "Stalled": "True URLInvalid: bad url",
			},
		},
		"Waiting": {
			reason: "a wait comes back after its own time",
			err:    staged(failure.Wait("NotFound", 7*time.Second, errors.New("not there"))),
			after:  7 * time.Second,
			conditions: map[string]string{
				"FetchFailed": "True NotFound: not there", "Ready": "False NotFound: not there",
				"Reconciling": "True ProgressingWithRetry: reconciliation in progress",
			},
		},
		"DefaultWait": {
			reason: "a wait without a time takes the controller's default",
			err:    staged(failure.Wait("NotFound", 0, errors.New("not there"))),
			after:  30 * time.Second,
			conditions: map[string]string{
				"FetchFailed": "True NotFound: not there", "Ready": "False NotFound: not there",
				"Reconciling": "True ProgressingWithRetry: reconciliation in progress",
			},
		},
		"RetriedNotBefore": {
			reason: "an upstream that asks for time gets it, and the retry counts as one",
			err:    staged(failure.RetryAfter("GitOperationFailed", 90*time.Second, errors.New("too many requests"))),
			after:  90 * time.Second,
			conditions: map[string]string{
				"FetchFailed": "True GitOperationFailed: too many requests", "Ready": "False GitOperationFailed: too many requests",
				"Reconciling": "True ProgressingWithRetry: reconciliation in progress",
			},
		},
		"NoStage": {
			reason:  "an error of no stage is told by Ready alone",
			err:     errors.New("odd"),
			retried: true,
			conditions: map[string]string{
				"Ready": "False Failed: odd", "Reconciling": "True ProgressingWithRetry: reconciliation in progress",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) { return "", tc.err })
			result, err := b.reconcile(t)
			if (err != nil) != tc.retried || result.RequeueAfter != tc.after {
				t.Errorf("%s: got %+v, %v", tc.reason, result, err)
			}
			obj := b.get(t)
			if diff := cmp.Diff(tc.conditions, summary(obj)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got := obj.Status.ObservedGeneration == obj.Generation; got != tc.observed {
				t.Errorf("%s: observed %t", tc.reason, got)
			}
			if len(b.events.events) != 1 {
				t.Errorf("%s: %d events", tc.reason, len(b.events.events))
			}
		})
	}
}

func TestFailureClearsOnRecovery(t *testing.T) {
	t.Parallel()
	fail := true
	b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
		if fail {
			return "", staged(errors.New("down"))
		}
		return "v1", nil
	})
	if _, err := b.reconcile(t); err == nil {
		t.Fatal("the failure was lost")
	}
	fail = false
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Ready": "True Succeeded: made v1", "ArtifactInStorage": "True Succeeded: made v1"}
	if diff := cmp.Diff(want, summary(b.get(t))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnchangedFailureWritesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(ctx context.Context, _ *sourcev1.GitRepository, announce kernel.Announce) (string, error) {
		if err := announce(ctx, status.Progress{Message: "building", NewRevision: "new"}); err != nil {
			return "", err
		}
		return "", staged(errors.New("cut off"))
	})
	if _, err := b.reconcile(t); err == nil {
		t.Fatal("the failure was lost")
	}
	first, writes := b.get(t), b.writes
	if _, err := b.reconcile(t); err == nil {
		t.Fatal("the failure was lost")
	}
	if again := b.get(t); again.ResourceVersion != first.ResourceVersion || b.writes != writes {
		t.Errorf("%d more writes: Ready flaps, or its time moves:\n%s", b.writes-writes, cmp.Diff(first.Status, again.Status))
	}
}

func TestPanicBecomesACondition(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) { panic("boom") })
	if _, err := b.reconcile(t); err == nil {
		t.Fatal("a panic must be retried")
	}
	ready := conditions.Get(b.get(t), meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != meta.FailedReason {
		t.Errorf("got %+v", ready)
	}
}

func TestSuspendDoesNoWorkButAnswersRequests(t *testing.T) {
	t.Parallel()
	worked := 0
	b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
		worked++
		return "v1", nil
	})
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	b.edit(t, func(obj *sourcev1.GitRepository) {
		obj.Spec.Suspend = true
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	result, err := b.reconcile(t)
	obj := b.get(t)
	if err != nil || result.RequeueAfter != 0 || worked != 1 {
		t.Errorf("got %+v, %v, worked %d times", result, err, worked)
	}
	if obj.Status.LastHandledReconcileAt != "now" || obj.Status.ObservedGeneration != obj.Generation {
		t.Errorf("got %+v", obj.Status)
	}
}

func TestRequestIsHandledEvenWhenItFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
		return "", errors.New("down")
	})
	b.edit(t, func(obj *sourcev1.GitRepository) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "token-1"}
	})
	if _, err := b.reconcile(t); err == nil {
		t.Fatal("the failure was lost")
	}
	if got := b.get(t).Status.LastHandledReconcileAt; got != "token-1" {
		t.Errorf("got %q", got)
	}
}

func TestDeletionFinalizesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, makes("v1"))
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{finalizer}, b.get(t).Finalizers); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if err := env.Client.Delete(t.Context(), b.get(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.Client.Get(t.Context(), b.key, &sourcev1.GitRepository{}); !apierrors.IsNotFound(err) || b.kind.finalized != 1 {
		t.Errorf("finalized %d times, then got %v", b.kind.finalized, err)
	}
}

func TestConflictIsNoFailure(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		meanwhile func(*bench)
	}{
		"Edited": {
			reason:    "what was made is not what the spec asks for",
			meanwhile: func(b *bench) { b.edit(t, func(obj *sourcev1.GitRepository) { obj.Spec.URL += "/y" }) },
		},
		"Deleted": {
			reason: "an object that is to go needs no report of its work",
			meanwhile: func(b *bench) {
				if err := env.Client.Delete(t.Context(), b.get(t)); err != nil {
					t.Fatal(err)
				}
			},
		},
		"Reported": {
			reason: "the report may rest on what somebody else has written to status by now",
			meanwhile: func(b *bench) {
				obj := b.get(t)
				obj.Status.ContentConfigChecksum = "v0"
				if err := env.Client.Status().Update(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			},
		},
		"Replaced": {
			reason: "another object of the same name has not been worked on",
			meanwhile: func(b *bench) {
				obj := b.get(t)
				b.edit(t, func(obj *sourcev1.GitRepository) { obj.Finalizers = nil })
				if err := env.Client.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
				obj.ObjectMeta = metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name}
				if err := env.Client.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *bench
			b = newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
				tc.meanwhile(b)
				return "v1", nil
			})
			result, err := b.reconcile(t)
			if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*time.Second {
				t.Errorf("%s: got %+v, %v; want a look at it soon", tc.reason, result, err)
			}
			if got := summary(b.get(t)); len(got) != 0 || len(b.events.events) != 0 || b.kind.settled != 0 {
				t.Errorf("%s: reported %v, told %+v, settled %d times", tc.reason, got, b.events.events, b.kind.settled)
			}
		})
	}
}

func TestRequestsDuringTheWorkDoNotKeepItFromBeingReported(t *testing.T) {
	t.Parallel()
	requests := 0
	var b *bench
	request := func() {
		requests++
		b.edit(t, func(obj *sourcev1.GitRepository) {
			obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: fmt.Sprintf("token-%d", requests)}
		})
	}
	b = newBench(t, func(ctx context.Context, _ *sourcev1.GitRepository, announce kernel.Announce) (string, error) {
		request()
		if err := announce(ctx, status.Progress{Message: "building", NewRevision: "new upstream revision 'v1'"}); err != nil {
			return "", err
		}
		request()
		return "v1", nil
	})
	request()
	result, err := b.reconcile(t)
	if err != nil || result.RequeueAfter != time.Minute+time.Second {
		t.Fatalf("got %+v, %v; want the jittered interval", result, err)
	}
	obj := b.get(t)
	want := map[string]string{"Ready": "True Succeeded: made v1", "ArtifactInStorage": "True Succeeded: made v1"}
	if diff := cmp.Diff(want, summary(obj)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(b.events.events) != 1 || b.kind.settled != 1 {
		t.Errorf("told %+v, settled %d times", b.events.events, b.kind.settled)
	}
	// What was asked for during the work is not answered by it.
	if obj.Status.LastHandledReconcileAt != "token-1" || obj.Annotations[meta.ReconcileRequestAnnotation] != "token-3" {
		t.Errorf("handled %q of %v", obj.Status.LastHandledReconcileAt, obj.Annotations)
	}
}

func TestWhoTouchesAnObjectAllTheTimeHoldsNoWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t, makes("v2"))
	server, _ := b.kernel.Client.(client.WithWatch)
	b.kernel.Client = interceptor.NewClient(server, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			b.edit(t, func(obj *sourcev1.GitRepository) { obj.Labels = map[string]string{"writes": strconv.Itoa(b.writes)} })
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	result, err := b.reconcile(t)
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*time.Second || b.writes > 5 || b.kind.settled != 0 {
		t.Errorf("got %+v, %v after %d writes; want a look at it soon", result, err, b.writes)
	}
}

func TestFailingObjectsLeaveWorkersToTheRest(t *testing.T) {
	t.Parallel()
	hanging, release := make(chan struct{}), make(chan struct{})
	attempts := 0
	dead := newBench(t, func(context.Context, *sourcev1.GitRepository, kernel.Announce) (string, error) {
		attempts++
		if attempts == 2 {
			close(hanging)
			<-release
		}
		return "", errors.New("timed out")
	})
	if _, err := dead.reconcile(t); err == nil {
		t.Fatal("the failure was lost")
	}
	second := make(chan struct{})
	go func() {
		defer close(second)
		_, _ = dead.kernel.Reconcile(t.Context(), ctrl.Request{NamespacedName: dead.key})
	}()
	<-hanging
	// What is not ready has one of two workers. Another failing object has to wait for it, and writes nothing.
	writes := dead.writes
	dead.kernel.Backoff.When(ctrl.Request{NamespacedName: dead.key})
	result, err := dead.reconcile(t)
	if err != nil || result != (ctrl.Result{}) || attempts != 2 || dead.writes != writes || len(dead.called) != 0 {
		t.Errorf("got %+v, %v after %d attempts and %d writes", result, err, attempts, dead.writes-writes)
	}
	close(release)
	<-second
	if len(dead.called) != 1 {
		t.Errorf("called %d times", len(dead.called))
	}
	if _, err := dead.reconcile(t); err == nil || attempts != 3 {
		t.Errorf("the turn has not come: %v after %d attempts", err, attempts)
	}
}

func TestStopIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, func(ctx context.Context, _ *sourcev1.GitRepository, _ kernel.Announce) (string, error) {
		cancel()
		return "", ctx.Err()
	})
	if _, err := b.kernel.Reconcile(ctx, ctrl.Request{NamespacedName: b.key}); err != nil {
		t.Fatal(err)
	}
	if got := summary(b.get(t)); len(got) != 0 || len(b.events.events) != 0 {
		t.Errorf("a stopped process reported %v", got)
	}
}
