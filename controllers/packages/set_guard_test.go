package packages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/engine/cluster"
)

// TestWhatComesMeanwhileMakesNoRoom: variants that a mistake has made are no reason to let go of those that it would have deleted,
// however often the set is looked at, and after a restart.
func TestWhatComesMeanwhileMakesNoRoom(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c")
	p.named(map[string]string{"core": "yes"}, "d", "e", "f")
	set := p.set(selects("edge"))
	p.spread(set, "a/app", "b/app", "c/app")
	p.ask(set, func() { set.Spec.Targets[0] = selects("core") })
	all := []string{"a/app", "b/app", "c/app", "d/app", "e/app", "f/app"}
	guarded := func() {
		t.Helper()
		p.spread(set, all...)
		until(p, set, "the guard keeps three", func(s *packagesv1.PackageVariantSet) (bool, string) {
			return conditions.IsTrue(s, packagesv1.DeletionGuardedCondition) && s.Status.Unwanted == 3, fmt.Sprintf("%+v", s.Status)
		})
	}
	guarded()
	p.answered(set, "once more")
	guarded()
	p.stop()
	p.start()
	p.answered(set, "after a restart")
	guarded()
	p.ask(set, func() { set.Spec.DeletionGuard = hasty(0) })
	p.spread(set, "d/app", "e/app", "f/app")
	// Those that have come are as any others by now.
	p.ask(set, func() { set.Spec.DeletionGuard = hasty(50) })
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("d")}, "core")
	p.spread(set, "e/app", "f/app")
}

// meddler changes a variant each time just before the controllers do.
type meddler struct {
	*plane

	method string
	isOn   atomic.Bool
	times  atomic.Int64
}

func (m *meddler) meet(r *http.Request) *http.Response {
	_, name, isVariant := strings.Cut(r.URL.Path, "/packagevariants/")
	if !m.isOn.Load() || !isVariant || strings.Contains(name, "/") || r.Method != m.method {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"meddled":"%d"}}}`, m.times.Add(1))
	v := &packagesv1.PackageVariant{ObjectMeta: m.meta(name)}
	if err := env.Client.Patch(context.WithoutCancel(r.Context()), v, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		m.Errorf("change %s: %v", name, err)
	}
	return nil
}

// TestSomebodyElseWritesAVariant: that it has changed meanwhile is no failure of a target, and keeps the set from saying nothing.
func TestSomebodyElseWritesAVariant(t *testing.T) {
	t.Parallel()
	other := &meddler{method: http.MethodPut}
	p := newPlane(t, func(p *plane) { p.meet = other.meet })
	other.plane = p
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c")
	set := p.set(selects("edge"))
	p.spread(set, "a/app", "b/app", "c/app")
	other.isOn.Store(true)
	p.ask(set, func() { set.Spec.Targets[0].Template.Namespace = "elsewhere" })
	p.answered(set, "edited")
	other.isOn.Store(false)
	until(p, set, "the edit is done", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.ObservedGeneration == s.Generation, said(s)
	})
	for _, v := range p.spread(set, "a/app", "b/app", "c/app") {
		if v.Spec.Namespace != "elsewhere" {
			t.Errorf("%s was not changed", v.Name)
		}
	}
	p.events.mu.Lock()
	if told := strings.Join(p.events.events, "\n"); strings.Contains(told, packagesv1.TargetsFailedReason) || other.times.Load() == 0 {
		t.Errorf("after %d changes of somebody else it is told that targets fail:\n%s", other.times.Load(), told)
	}
	p.events.mu.Unlock()

	other.method = http.MethodDelete
	other.isOn.Store(true)
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("b")}, "edge")
	until(p, set, "the target is gone, and its variant is not", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.Targets == 2 && s.Status.Variants == 3 && !conditions.IsReady(s), fmt.Sprintf("%+v", s.Status)
	})
	other.isOn.Store(false)
	p.spread(set, "a/app", "c/app")
}

// TestAKindThatIsNotThereIsNotAskedForAllTheTime: what the API server serves is looked at now and then, however often the set is.
func TestAKindThatIsNotThereIsNotAskedForAllTheTime(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	began := time.Now()
	p := newPlane(t, func(p *plane) {
		p.meet = func(r *http.Request) *http.Response {
			if r.URL.Path == "/apis" {
				looks.Add(1)
			}
			return nil
		}
	})
	p.mayRead()
	set := p.set(packagesv1.Target{ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "nowhere.example/v1", Kind: "Nothing"}})
	until(p, set, "many looks", func(s *packagesv1.PackageVariantSet) (bool, string) {
		count := p.looks.counts()["*v1alpha1.PackageVariantSet fleet"]
		return count > 12, fmt.Sprintf("%d %s", count, said(s))
	})
	// Some follow each other at first, and then there is one in five seconds.
	if n, most := looks.Load(), 6+int64(time.Since(began)/(5*time.Second)); n > most {
		t.Errorf("the API server was asked for all its kinds %d times, want %d at most", n, most)
	}
}

// TestWhatTheAPIServerSaysOfTargetsIsTold: it is tried again, and the set does not say only that its time is over.
func TestWhatTheAPIServerSaysOfTargetsIsTold(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) {
		p.meet = func(r *http.Request) *http.Response {
			if !strings.HasSuffix(r.URL.Path, "/configmaps") {
				return nil
			}
			return &http.Response{
				StatusCode: http.StatusInternalServerError, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the converter is broken","code":500}`)),
			}
		}
	})
	p.mayRead()
	set := p.set(packagesv1.Target{ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap"}}, func(s *packagesv1.PackageVariantSetSpec) {
		s.Timeout = &metav1.Duration{Duration: 2 * time.Second}
	})
	until(p, set, "what is broken is told", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return strings.Contains(said(s), "the converter is broken"), said(s)
	})
}

// TestNobodyLooksIntoAllNamespaces: a kind that was not known when somebody asked where its objects are may live in namespaces.
func TestNobodyLooksIntoAllNamespaces(t *testing.T) {
	t.Parallel()
	connector, err := cluster.NewConnector(env.Config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	targets := lookups.NewTargets(connector, func(types.NamespacedName) {}, logr.Discard())
	t.Cleanup(targets.Close)
	targets.Allow(nil)
	want := lookups.Want{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Selector: labels.Everything()}
	targets.Watch(types.NamespacedName{Namespace: "a", Name: "a"}, cluster.Identity{}, []lookups.Want{want})
	if found, err := targets.List(t.Context(), cluster.Identity{}, want); err == nil {
		t.Errorf("%d objects of all namespaces are found", len(found))
	}
}
