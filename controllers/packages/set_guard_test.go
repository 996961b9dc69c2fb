package packages_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
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
	p.ask(set, func() { set.Spec.DeletionGuard = &packagesv1.DeletionGuard{MinPercent: new(int32(0))} })
	p.spread(set, "d/app", "e/app", "f/app")
	// Those that have come are as any others by now.
	p.ask(set, func() { set.Spec.DeletionGuard = nil })
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

func (m *meddler) before(r *http.Request) {
	_, name, isVariant := strings.Cut(r.URL.Path, "/packagevariants/")
	if !m.isOn.Load() || !isVariant || strings.Contains(name, "/") || r.Method != m.method {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"meddled":"%d"}}}`, m.times.Add(1))
	v := &packagesv1.PackageVariant{ObjectMeta: m.meta(name)}
	if err := env.Client.Patch(context.WithoutCancel(r.Context()), v, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		m.Errorf("change %s: %v", name, err)
	}
}

// TestSomebodyElseWritesAVariant: that it has changed meanwhile is no failure of a target, and keeps the set from saying nothing.
func TestSomebodyElseWritesAVariant(t *testing.T) {
	t.Parallel()
	other := &meddler{method: http.MethodPut}
	p := newPlane(t, func(p *plane) { p.before = other.before })
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
	p := newPlane(t, func(p *plane) {
		p.before = func(r *http.Request) {
			if r.URL.Path == "/apis" {
				looks.Add(1)
			}
		}
	})
	p.mayRead()
	set := p.set(packagesv1.Target{ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "nowhere.example/v1", Kind: "Nothing"}})
	until(p, set, "many looks", func(s *packagesv1.PackageVariantSet) (bool, string) {
		count := p.looks.counts()["*v1alpha1.PackageVariantSet fleet"]
		return count > 12, fmt.Sprintf("%d %s", count, said(s))
	})
	if n := looks.Load(); n > 8 {
		t.Errorf("the API server was asked for all its kinds %d times", n)
	}
}
