package packages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// incompletely waits until the Repository says what it leaves out.
func (p *plane) incompletely(name, reason, says string) {
	p.Helper()
	r := &packagesv1.Repository{ObjectMeta: p.meta(name)}
	until(p, r, "the Repository names what it leaves out", func(r *packagesv1.Repository) (bool, string) {
		c := conditions.Get(r, packagesv1.IncompleteCondition)
		return c != nil && c.Reason == reason && strings.Contains(c.Message, says) && conditions.IsReady(r), fmt.Sprintf("%+v; %s", c, said(r))
	})
}

// TestARepositoryWithTooManyPackagesGoesOn: somebody pushes branches without end. Variants keep their packages and begin new ones, and what
// is left out keeps its objects.
func TestARepositoryWithTooManyPackagesGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) { p.limits.MaxPackages = 4 })
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	head := cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	cluster.Commit("drafts/theirs/mine", "a draft", upstream.Text(map[string]string{"theirs/Kptfile": kptfile}))
	p.drafted(p.variant(), cluster, func(upstream.Files) bool { return true })
	until(p, &packagesv1.Repository{ObjectMeta: p.meta("cluster")}, "both drafts are there", func(r *packagesv1.Repository) (bool, string) {
		return r.Status.OpenChanges == 2 && len(p.revisions("theirs")) == 1, said(r)
	})
	for i := range 6 {
		cluster.SetRef(fmt.Sprintf("refs/heads/drafts/junk-%d/w", i), head)
	}
	p.look("cluster")
	p.incompletely("cluster", packagesv1.LimitExceededReason, "junk-")
	p.drafted(p.variantNamed("new", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "new" }), cluster, func(upstream.Files) bool { return true })
	theirs := p.revisions("theirs")
	if len(theirs) != 1 {
		t.Fatalf("what is left out has %d objects", len(theirs))
	}
	until(p, &theirs[0], "its revision waits", func(r *packagesv1.PackageRevision) (bool, string) {
		return conditions.GetReason(r, "Ready") == packagesv1.LimitExceededReason && r.Status.Lifecycle == packagesv1.LifecycleDraft, said(r)
	})
}

// TestAVariantWhosePackageIsLeftOutWaits: it begins no other draft, and its status says what it said.
func TestAVariantWhosePackageIsLeftOutWaits(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) { p.limits.MaxRefs = 6 })
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	head := cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant(always)
	p.published(v, "v1")
	for i := range 6 {
		cluster.SetRef(fmt.Sprintf("refs/heads/drafts/app/w%d", i), head)
	}
	p.look("cluster")
	blueprints.Tag("app/v2", blueprints.Commit("main", "app", plain("2.0.0")), false)
	p.incompletely("cluster", packagesv1.LimitExceededReason, "branch drafts/app/w")
	until(p, v, "it waits", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.GetReason(v, "Ready") == packagesv1.LimitExceededReason && v.Status.Published != nil && v.Status.Published.Revision == "v1", said(v)
	})
	for i := range 6 {
		cluster.DeleteRef(fmt.Sprintf("refs/heads/drafts/app/w%d", i))
	}
	p.look("cluster")
	p.published(v, "v2")
}

// TestABranchInTheWayIsNamed by who cannot go on for it, and nobody else is held up.
func TestABranchInTheWayIsNamed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	head := cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	cluster.SetRef("refs/heads/drafts/app", head)
	v := p.variant()
	p.drafted(p.variantNamed("other", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "other" }), cluster, func(upstream.Files) bool { return true })
	until(p, v, "it says which branch is in the way", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.GetReason(v, "Ready") == packagesv1.RefInTheWayReason && strings.Contains(said(v), "branch drafts/app is in the way"), said(v)
	})
	cluster.DeleteRef("refs/heads/drafts/app")
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
}
