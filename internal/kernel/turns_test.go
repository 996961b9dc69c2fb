package kernel

import (
	"strconv"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/fair"
)

func TestBackoffOutlastsBeingPutOff(t *testing.T) {
	t.Parallel()
	b := NewBackoff(time.Second, time.Hour)
	req := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	b.When(req)
	b.When(req)
	b.hold(req)
	b.Forget(req)
	if got := b.When(req); got != 4*time.Second {
		t.Errorf("after being put off: %s, want the third delay", got)
	}
	b.Forget(req)
	if got := b.When(req); got != time.Second {
		t.Errorf("after a success: %s, want the first delay", got)
	}
}

func TestUpstreamsDelayIsTheLeast(t *testing.T) {
	t.Parallel()
	k := &Kernel[*sourcev1.GitRepository, string]{Backoff: NewBackoff(time.Second, time.Hour)}
	req := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	for i, want := range []time.Duration{3 * time.Second, 3 * time.Second, 4 * time.Second, 8 * time.Second} {
		if got := k.retry(req, View{}, Report{}, 3*time.Second); got != want {
			t.Errorf("failure %d: %s, want %s", i+1, got, want)
		}
		k.Backoff.Forget(req)
	}
}

func TestWhoWaitsForWhom(t *testing.T) {
	t.Parallel()
	handled := "old"
	cases := map[string]struct {
		reason    string
		prepare   func(*sourcev1.GitRepository)
		suspended bool
		want      fair.Wish
		passes    bool
	}{
		"New":       {"an object that was never tried is nobody's request", func(*sourcev1.GitRepository) {}, false, fair.Wish{Unready: true}, false},
		"Ready":     {"an object that is ready has its turn", func(obj *sourcev1.GitRepository) { conditions.MarkTrue(obj, meta.ReadyCondition, "R", "") }, false, fair.Wish{}, false},
		"Failed":    {"an object that failed may hang", func(obj *sourcev1.GitRepository) { conditions.MarkFalse(obj, meta.ReadyCondition, "R", "") }, false, fair.Wish{Unready: true}, false},
		"Crashed":   {"an object whose work was cut off may hang", func(obj *sourcev1.GitRepository) { conditions.MarkUnknown(obj, meta.ReadyCondition, "R", "") }, false, fair.Wish{Unready: true}, false},
		"Suspended": {"an object that is left alone takes no time", func(*sourcev1.GitRepository) {}, true, fair.Wish{Unready: true}, true},
		"Edited": {"an edit since the failure is looked at", func(obj *sourcev1.GitRepository) {
			conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
			obj.Generation++
		}, false, fair.Wish{Urgent: true}, false},
		"Asked": {"a request is answered", func(obj *sourcev1.GitRepository) {
			conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
			ask(obj, "new")
		}, false, fair.Wish{Urgent: true}, false},
		"Answered": {"a request is answered once", func(obj *sourcev1.GitRepository) {
			conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
			ask(obj, "old")
		}, false, fair.Wish{Unready: true}, false},
		"Deleted": {"a deletion has its turn, whatever the API server counts as an edit", func(obj *sourcev1.GitRepository) {
			conditions.MarkTrue(obj, meta.ReadyCondition, "R", "")
			obj.Generation++
			obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
		}, true, fair.Wish{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &sourcev1.GitRepository{}
			obj.Generation = 1
			tc.prepare(obj)
			view := View{LastHandledReconcileAt: &handled, Suspended: tc.suspended}
			if got, passes := wishOf(obj, view), mayPass(obj, view); got != tc.want || passes != tc.passes {
				t.Errorf("%s: got %+v, %t", tc.reason, got, passes)
			}
		})
	}
}

func ask(obj *sourcev1.GitRepository, token string) {
	obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: token}
}

// A tenant who deletes thousands of objects keeps nobody from being served, and each of them is looked at again once.
func TestDeletionsTakeTurns(t *testing.T) {
	t.Parallel()
	var called []reconcile.Request
	turns := NewTurns(10, func(req reconcile.Request) { called = append(called, req) })
	enter := func(namespace string, i int) (*fair.Share, bool) {
		req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)}}
		return turns.Enter(req, fair.Wish{Namespace: namespace})
	}
	const many = 5000
	var busy []*fair.Share
	for i := range many {
		if share, entered := enter("a", i); entered {
			busy = append(busy, share)
		}
	}
	if len(busy) != 5 {
		t.Fatalf("one namespace has %d of ten workers", len(busy))
	}
	if share, entered := enter("b", 0); !entered {
		t.Error("another namespace waits")
	} else {
		share.Release()
	}
	if len(called) != 0 {
		t.Errorf("%d are looked at again, and nothing has changed", len(called))
	}
	for i := range many {
		if i >= len(busy) {
			share, entered := enter("a", i)
			if !entered {
				t.Fatalf("%d was called, and has no turn", i)
			}
			busy = append(busy, share)
		}
		busy[i].Release()
	}
	if len(called) != many-5 || len(turns.waiting) != 0 {
		t.Errorf("%d were called, and %d still wait", len(called), len(turns.waiting))
	}
}

// A tenant who edits what hangs, again and again, has the workers of a namespace, and the others theirs.
func TestEditsKeepToTheirNamespace(t *testing.T) {
	t.Parallel()
	turns := NewTurns(10, func(reconcile.Request) {})
	enter := func(namespace string, i int, edited bool) bool {
		obj, handled := &sourcev1.GitRepository{}, ""
		obj.Namespace, obj.Name = namespace, strconv.Itoa(i)
		conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
		if edited {
			obj.Generation++
		}
		view, req := View{LastHandledReconcileAt: &handled}, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: obj.Name}}
		if mayPass(obj, view) {
			return true
		}
		_, entered := turns.Enter(req, wishOf(obj, view))
		return entered
	}
	busy := 0
	for i := range 20 {
		if enter("a", i, true) {
			busy++
		}
	}
	if busy != 5 {
		t.Errorf("one namespace has %d of ten workers", busy)
	}
	for i := range 4 {
		if entered := enter("b", i, false); entered != (i < 3) {
			t.Errorf("object %d, which is not ready, has a worker: %t", i, entered)
		}
	}
	if !enter("b", 3, true) {
		t.Error("an edit waits with those that were not edited")
	}
}

// Whoever has a turn and is gone, or does not need it any more, keeps it from nobody.
func TestTurnsOfTheGoneAreOthers(t *testing.T) {
	t.Parallel()
	called := 0
	turns := NewTurns(1, func(reconcile.Request) { called++ })
	of := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: name}}
	}
	enter := func(name string) (*fair.Share, bool) { return turns.Enter(of(name), fair.Wish{Namespace: "a"}) }
	first, _ := enter("first")
	for _, name := range []string{"gone", "asked", "last"} {
		if _, entered := enter(name); entered {
			t.Fatalf("%s has a worker, and there is none", name)
		}
	}
	first.Release()
	turns.pass(of("gone"))
	turns.pass(of("asked"))
	turns.pass(of("never seen"))
	if _, entered := enter("last"); !entered || called != 3 {
		t.Errorf("the turn was lost: %t, %d calls", entered, called)
	}
}

func TestObjectsAreCalledThroughTheQueue(t *testing.T) {
	t.Parallel()
	b := NewBackoff(time.Second, time.Hour)
	req := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	b.again(req) // The controller has not started: whatever there is comes into its queue then.
	queue := b.newQueue("kind", b)
	t.Cleanup(queue.ShutDown)
	b.again(req)
	if got, _ := queue.Get(); got != req || queue.Len() != 0 {
		t.Errorf("got %v, and %d more", got, queue.Len())
	}
}
