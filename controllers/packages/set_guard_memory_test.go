package packages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// guards waits until the guard keeps so many variants, and says how to let them go.
func (p *plane) guards(set *packagesv1.PackageVariantSet, kept int32) *packagesv1.DeletionGuardStatus {
	p.Helper()
	until(p, set, fmt.Sprintf("the guard keeps %d variants", kept), func(s *packagesv1.PackageVariantSet) (bool, string) {
		record := s.Status.DeletionGuard
		return conditions.IsTrue(s, packagesv1.DeletionGuardedCondition) && s.Status.Unwanted == kept && record != nil && len(record.Variants) == int(kept) &&
			conditions.GetReason(s, "Ready") == packagesv1.DeletionGuardedReason && strings.Contains(said(s), record.Digest), fmt.Sprintf("%+v %+v", s.Status, record)
	})
	return set.Status.DeletionGuard
}

// acknowledge has the annotation name the deletions that may be.
func (p *plane) acknowledge(set *packagesv1.PackageVariantSet, value string) {
	p.Helper()
	p.patch(set, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, packagesv1.AllowDeletionAnnotation, value))
}

// TestTheGuardKeepsVariants: a selector that matches nothing by mistake deletes nothing until a person names the very variants.
func TestTheGuardKeepsVariants(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c")
	set := p.set(selects("edge"))
	all := []string{"a/app", "b/app", "c/app"}
	p.spread(set, all...)
	p.ask(set, func() { set.Spec.Targets[0] = selects("egde") })
	first := p.guards(set, 3).Digest
	for _, wrong := range []string{"3", "sha256:abc", strings.Repeat("0", 64), first[:len("sha256:")+11]} {
		p.acknowledge(set, wrong)
		until(p, set, "what names nothing is refused", func(s *packagesv1.PackageVariantSet) (bool, string) {
			return strings.Contains(said(s), "the digest \""+wrong[:min(len(wrong), 10)]) && strings.Contains(said(s), "does not match"), said(s)
		})
		p.spread(set, all...)
	}
	p.ask(set, func() { set.Spec.Targets[0] = selects("egdee") })
	until(p, set, "an edit has another digest", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.DeletionGuard.Digest != first && strings.Contains(said(s), s.Status.DeletionGuard.Digest), said(s)
	})
	p.acknowledge(set, first)
	until(p, set, "the acknowledgement has expired", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return strings.Contains(said(s), "does not match"), said(s)
	})
	p.spread(set, all...)
	p.acknowledge(set, set.Status.DeletionGuard.Digest)
	p.spread(set)
	until(p, set, "the guard is gone", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && conditions.Get(s, packagesv1.DeletionGuardedCondition) == nil, fmt.Sprintf("%+v", s.Status)
	})
	p.told(packagesv1.DeletionAcknowledgedReason)
}

// told checks that there was an event with the reason.
func (p *plane) told(reason string) {
	p.Helper()
	p.events.mu.Lock()
	defer p.events.mu.Unlock()
	if all := strings.Join(p.events.events, "\n"); !strings.Contains(all, reason) {
		p.Errorf("%s is not told:\n%s", reason, all)
	}
}

// TestAnAcknowledgementIsUsedOnce: what a person let go of on purpose says nothing about a later mistake.
func TestAnAcknowledgementIsUsedOnce(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c", "d", "e", "f")
	set := p.set(selects("edge"), func(s *packagesv1.PackageVariantSetSpec) { s.DeletionGuard = hasty(100) })
	p.spread(set, "a/app", "b/app", "c/app", "d/app", "e/app", "f/app")
	for i, name := range []string{"a", "b", "c", "d"} {
		p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta(name)}, "edge")
		p.guards(set, int32(i+1))
	}
	acknowledged := set.Status.DeletionGuard.Digest
	p.acknowledge(set, acknowledged[:len("sha256:")+12])
	p.spread(set, "e/app", "f/app")
	p.named(map[string]string{"edge": "yes"}, "g", "h")
	p.spread(set, "e/app", "f/app", "g/app", "h/app")
	for _, name := range []string{"e", "f", "g", "h"} {
		p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta(name)}, "edge")
	}
	if record := p.guards(set, 4); record.Acknowledged != acknowledged || record.Digest == acknowledged {
		t.Errorf("the record is %+v", record)
	}
	p.spread(set, "e/app", "f/app", "g/app", "h/app")
}

// TestTargetsThatDisappearOneByOneAddUp: also over restarts, and a record that is lost lets nothing go.
func TestTargetsThatDisappearOneByOneAddUp(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	p.named(map[string]string{"edge": "yes"}, names...)
	set := p.set(selects("edge"))
	all := []string{"a/app", "b/app", "c/app", "d/app", "e/app", "f/app"}
	p.spread(set, all...)
	for i, name := range names[:3] {
		p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta(name)}, "edge")
		p.spread(set, all[i+1:]...)
		if i == 1 {
			p.stop()
			p.start()
		}
	}
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("d")}, "edge")
	if record := p.guards(set, 1); record.Targets != 6 || record.Gone != 3 {
		t.Errorf("the record is %+v", record)
	}
	p.spread(set, all[3:]...)

	// Of three, one might go if nothing was known of those before.
	p.stop()
	if err := env.Client.Status().Patch(t.Context(), set, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"deletionGuard":null}}`))); err != nil {
		t.Fatal(err)
	}
	p.start()
	until(p, set, "the record is missed", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return strings.Contains(said(s), "has no record of the accepted targets"), said(s)
	})
	p.spread(set, all[3:]...)

	// With the target back, an edit of the spec accepts what there is.
	p.patch(&packagesv1.Repository{ObjectMeta: p.meta("d")}, `{"metadata":{"labels":{"edge":"yes"}}}`)
	until(p, set, "nothing is missing", func(s *packagesv1.PackageVariantSet) (bool, string) { return conditions.IsReady(s), said(s) })
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("e")}, "edge")
	p.spread(set, "d/app", "f/app")
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("f")}, "edge")
	p.guards(set, 1)
	p.patch(&packagesv1.Repository{ObjectMeta: p.meta("f")}, `{"metadata":{"labels":{"edge":"yes"}}}`)
	p.ask(set, func() { set.Spec.Targets[0].Template.Labels = map[string]string{"new": "yes"} })
	until(p, set, "the edit is the baseline", func(s *packagesv1.PackageVariantSet) (bool, string) {
		record := s.Status.DeletionGuard
		return record.Generation == set.Generation && record.Targets == 2 && record.Gone == 0, fmt.Sprintf("%+v", record)
	})
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("d")}, "edge")
	p.spread(set, "f/app")
}

// TestRefusedDeletionsAreReported: they count for nothing, and happen once the API server accepts them.
func TestRefusedDeletionsAreReported(t *testing.T) {
	t.Parallel()
	var isOpen atomic.Bool
	var touches atomic.Int32
	p := newPlane(t, func(p *plane) {
		p.meet = func(r *http.Request) *http.Response {
			if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/packagevariants/") || isOpen.Load() {
				return nil
			}
			set := &packagesv1.PackageVariantSet{ObjectMeta: p.meta("fleet")}
			touch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, touches.Add(1))
			_ = env.Client.Patch(p.Context(), set, client.RawPatch(types.MergePatchType, []byte(touch))) // Others write to it meanwhile.
			return &http.Response{
				StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"a policy keeps it","code":403}`)),
			}
		}
	})
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c")
	set := p.set(selects("edge"))
	p.spread(set, "a/app", "b/app", "c/app")
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("a")}, "edge")
	for _, token := range []string{"one", "two", "three"} {
		until(p, set, "the refusal is reported", func(s *packagesv1.PackageVariantSet) (bool, string) {
			return strings.Contains(said(s), "a policy keeps it") && s.Status.DeletionGuard.Gone <= 1 && s.Status.Variants == 3, fmt.Sprintf("%s %+v", said(s), s.Status)
		})
		p.answered(set, token)
	}
	isOpen.Store(true)
	p.spread(set, "b/app", "c/app")
	until(p, set, "one is gone", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.DeletionGuard.Gone == 1, fmt.Sprintf("%s %+v", said(s), s.Status.DeletionGuard)
	})
}

// TestAVariantThatIsGoneAlreadyIsNotCounted: the cache still has it, or somebody else was faster.
func TestAVariantThatIsGoneAlreadyIsNotCounted(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) {
		p.meet = func(r *http.Request) *http.Response {
			_, name, isOf := strings.Cut(r.URL.Path, "/packagevariants/")
			if r.Method == http.MethodDelete && isOf {
				v := &packagesv1.PackageVariant{ObjectMeta: p.meta(name)}
				_ = env.Client.Patch(p.Context(), v, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
				_ = env.Client.Delete(p.Context(), v)
			}
			return nil
		}
	})
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c")
	set := p.set(selects("edge"))
	p.spread(set, "a/app", "b/app", "c/app")
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("a")}, "edge")
	p.spread(set, "b/app", "c/app")
	until(p, set, "none is counted", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.Variants == 2 && s.Status.DeletionGuard.Gone == 0, fmt.Sprintf("%s %+v", said(s), s.Status.DeletionGuard)
	})
}

// TestALabelThatIsRenamedDeletesNothing: object by object, as a loop over kubectl does it.
func TestALabelThatIsRenamedDeletesNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	p.named(map[string]string{"edge": "yes"}, names...)
	set := p.set(selects("edge"), func(s *packagesv1.PackageVariantSetSpec) { s.DeletionGuard = nil })
	all := p.spread(set, "a/app", "b/app", "c/app", "d/app", "e/app", "f/app")
	for i, name := range names {
		p.patch(&packagesv1.Repository{ObjectMeta: p.meta(name)}, `{"metadata":{"labels":{"edge":null,"location":"yes"}}}`)
		until(p, set, name+" is missed", func(s *packagesv1.PackageVariantSet) (bool, string) {
			return int(s.Status.Unwanted) == i+1, fmt.Sprintf("%+v", s.Status)
		})
		if i == 0 { // An edit that has nothing to do with it ends no grace period.
			p.ask(set, func() { set.Spec.Targets[0].Template.Labels = map[string]string{"new": "yes"} })
			until(p, set, "the edit is done", func(s *packagesv1.PackageVariantSet) (bool, string) {
				return s.Status.DeletionGuard.Generation == set.Generation, fmt.Sprintf("%+v", s.Status)
			})
		}
	}
	p.guards(set, 6)
	p.ask(set, func() { set.Spec.Targets[0] = selects("location") })
	until(p, set, "the selector follows the label", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.Unwanted == 0, fmt.Sprintf("%+v", s.Status)
	})
	for i, v := range p.spread(set, "a/app", "b/app", "c/app", "d/app", "e/app", "f/app") {
		if v.UID != all[i].UID || v.Annotations[packagesv1.TargetGoneAnnotation] != "" {
			t.Errorf("%s is another one, or noted as gone: %v", v.Name, v.Annotations)
		}
	}
	p.told(packagesv1.TargetGoneReason)
	// What an edit deselects is meant.
	p.ask(set, func() {
		set.Spec.Targets[0].RepositorySelector = nil
		for _, name := range names[1:] {
			set.Spec.Targets[0].Repositories = append(set.Spec.Targets[0].Repositories, packagesv1.RepositoryTarget{Name: name})
		}
	})
	p.spread(set, "b/app", "c/app", "d/app", "e/app", "f/app")
}

// edges are three Repositories of a set, with a published package each, and an open draft. Somebody works on that in north.
type edges struct {
	*plane

	set  *packagesv1.PackageVariantSet
	all  map[string]*upstream.Edited
	work string
}

func newEdges(t *testing.T) *edges {
	t.Helper()
	e := &edges{plane: newPlane(t), all: map[string]*upstream.Edited{}}
	blueprints := e.repository("blueprints")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": deployment})), false)
	for _, name := range []string{"east", "north", "south"} {
		e.all[name] = e.upstreams.Repository(name + ".git")
		e.all[name].AcceptPushes()
		e.all[name].Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
		e.create(e.source(name, e.server), e.edge(name))
	}
	e.set = e.make()
	e.rests(0)
	blueprints.Tag("app/v2", blueprints.Commit("main", "app 2", upstream.Text(map[string]string{"app/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", "2.0.0")})), false)
	e.rests(3)
	e.work = e.all["north"].Commit("drafts/app/packagevariant-2", "hours of work", upstream.Text(map[string]string{"app/notes.txt": "hours of work\n"}))
	return e
}

// edge is a Repository that the set selects.
func (e *edges) edge(name string) *packagesv1.Repository {
	r := e.packages(name)
	r.Labels = map[string]string{"edge": "yes"}
	return r
}

// make creates the set.
func (e *edges) make() *packagesv1.PackageVariantSet {
	e.Helper()
	return e.plane.set(packagesv1.Target{
		RepositorySelector: &metav1.LabelSelector{MatchLabels: map[string]string{"edge": "yes"}},
		Template:           &packagesv1.VariantTemplate{Approval: &packagesv1.Approval{Policy: packagesv1.ApprovalInitial}},
	}, func(s *packagesv1.PackageVariantSetSpec) { s.DeletionGuard = nil })
}

// rests waits until each edge has its package, and so many have a draft.
func (e *edges) rests(open int32) {
	e.Helper()
	until(e.plane, e.set, "all packages are there", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.ReadyVariants == 3 && s.Status.OpenVariants == open && s.Status.Unwanted == 0, fmt.Sprintf("%s %+v", said(s), s.Status)
	})
}

// TestAReplacedRepositoryKeepsItsPackages: deleted and created again, it is the same target.
func TestAReplacedRepositoryKeepsItsPackages(t *testing.T) {
	t.Parallel()
	e := newEdges(t)
	before := refs(e.all["north"])
	variants := e.spread(e.set, "east/app", "north/app", "south/app")
	for range 3 {
		r := e.edge("north")
		e.delete(r)
		e.gone(r)
		until(e.plane, e.set, "the target is missed", func(s *packagesv1.PackageVariantSet) (bool, string) {
			return s.Status.Unwanted == 1, fmt.Sprintf("%+v", s.Status)
		})
		e.create(e.edge("north"))
		e.rests(3)
	}
	if after := refs(e.all["north"]); after != before {
		t.Errorf("refs were\n%s\nand are\n%s", before, after)
	}
	for i, v := range e.spread(e.set, "east/app", "north/app", "south/app") {
		if v.UID != variants[i].UID {
			t.Errorf("%s is another one", v.Name)
		}
	}
}

// TestAReplacedSetLosesNothing: the API server deletes its variants with it, and the new set makes them again.
func TestAReplacedSetLosesNothing(t *testing.T) {
	t.Parallel()
	e := newEdges(t)
	variants := e.spread(e.set, "east/app", "north/app", "south/app")
	e.delete(e.set)
	e.gone(e.set)
	e.set = e.make()
	for i := range variants {
		e.delete(&variants[i]) // There is no garbage collector here.
	}
	e.rests(3)
	for i, v := range e.spread(e.set, "east/app", "north/app", "south/app") {
		if v.UID == variants[i].UID || !metav1.IsControlledBy(&v, e.set) {
			t.Errorf("%s is not the new set's", v.Name)
		}
	}
	for name, edge := range e.all {
		testenv.Eventually(t, name+" keeps its package", func(context.Context) (bool, string) {
			got := refs(edge)
			return !strings.Contains(got, "deletionProposed") && strings.Contains(got, "refs/tags/app/v1") && edge.Raw("ls-tree", "main", "app") != "", got
		})
	}
	if e.all["north"].Raw("for-each-ref", "--contains", e.work) == "" {
		t.Error("hours of work are lost")
	}
}
