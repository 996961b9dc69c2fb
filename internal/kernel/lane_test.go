package kernel

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
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

func TestWhoPassesTheLane(t *testing.T) {
	t.Parallel()
	handled := "old"
	cases := map[string]struct {
		reason  string
		prepare func(*sourcev1.GitRepository)
		want    bool
	}{
		"New":     {"an object that was never tried may hang", func(*sourcev1.GitRepository) {}, false},
		"Ready":   {"an object that is ready passes", func(obj *sourcev1.GitRepository) { conditions.MarkTrue(obj, meta.ReadyCondition, "R", "") }, true},
		"Failed":  {"an object that failed may hang", func(obj *sourcev1.GitRepository) { conditions.MarkFalse(obj, meta.ReadyCondition, "R", "") }, false},
		"Crashed": {"an object whose work was cut off may hang", func(obj *sourcev1.GitRepository) { conditions.MarkUnknown(obj, meta.ReadyCondition, "R", "") }, false},
		"Edited": {"an edit since the failure is looked at", func(obj *sourcev1.GitRepository) {
			conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
			obj.Generation++
		}, true},
		"Asked": {"a request is answered", func(obj *sourcev1.GitRepository) {
			conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
			ask(obj, "new")
		}, true},
		"Answered": {"a request is answered once", func(obj *sourcev1.GitRepository) {
			conditions.MarkFalse(obj, meta.ReadyCondition, "R", "")
			ask(obj, "old")
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &sourcev1.GitRepository{}
			obj.Generation = 1
			tc.prepare(obj)
			if got := mayPass(obj, View{LastHandledReconcileAt: &handled}); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func ask(obj *sourcev1.GitRepository, token string) {
	obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: token}
}
