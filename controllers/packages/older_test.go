package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// waitsForAPerson waits until the variant has drafted the image, and says why it does not approve it. Nothing but the revision is published.
func (p *plane) waitsForAPerson(v *packagesv1.PackageVariant, in *upstream.Edited, image, reason, published string) {
	p.Helper()
	until(p, v, "the older content is drafted", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil && conditions.IsReady(v) && conditions.IsTrue(v, packagesv1.GoesBackCondition), said(v)
	})
	if got := conditions.GetReason(v, packagesv1.GoesBackCondition); got != reason {
		p.Errorf("the reason is %s: %s", got, conditions.GetMessage(v, packagesv1.GoesBackCondition))
	}
	p.has(in.Tree(v.Status.Change.Commit)["app/deployment.yaml"].Content, image)
	if v.Status.Published.Revision != published || v.Status.Change.Lifecycle != packagesv1.LifecycleDraft {
		p.Errorf("published is %+v, and the change %+v", v.Status.Published, v.Status.Change)
	}
}

// TestAPersonApprovesToGoBack: where upstream deletes its newest tag, the content of before is drafted, and no policy publishes it.
func TestAPersonApprovesToGoBack(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	v := p.variant(always)
	p.published(v, "v1")
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.published(v, "v2")
	blueprints.DeleteRef("refs/tags/app/v2")
	p.waitsForAPerson(v, cluster, "app:1.0.0", packagesv1.OlderUpstreamReason, "v2")
	p.has(conditions.GetMessage(v, packagesv1.GoesBackCondition), "app/v2", "app/v1")
	p.has(said(v), "has older upstream content")
	p.events.mu.Lock()
	told := strings.Join(p.events.events, "\n")
	p.events.mu.Unlock()
	p.has(told, "app Warning OlderUpstream")
	p.publish(v)
	if conditions.Has(v, packagesv1.GoesBackCondition) || v.Status.Published.Revision != "v3" {
		t.Errorf("it still goes back: %+v, %+v", v.Status.Conditions, v.Status.Published)
	}
}

// TestABranchThatIsSetBackWaits, and one that goes on does not.
func TestABranchThatIsSetBackWaits(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	first := strings.TrimSpace(blueprints.Raw("rev-parse", "main"))
	v := p.variant(always, func(s *packagesv1.PackageVariantSpec) { s.Upstream.Branch = "main" })
	p.published(v, "v1")
	blueprints.Commit("main", "newer", plain("2.0.0"))
	p.published(v, "v2")
	blueprints.SetRef("refs/heads/main", first)
	p.waitsForAPerson(v, cluster, "app:1.0.0", packagesv1.OlderUpstreamReason, "v2")
	blueprints.Commit("main", "another way", plain("3.0.0"))
	until(p, v, "the draft is of the other history", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.GetReason(v, packagesv1.GoesBackCondition) == packagesv1.NotComparableReason && conditions.IsReady(v) && v.Status.Change != nil &&
			strings.Contains(cluster.Tree(v.Status.Change.Commit)["app/deployment.yaml"].Content, "app:3.0.0"), said(v)
	})
	if v.Status.Published.Revision != "v2" {
		t.Errorf("published is %+v", v.Status.Published)
	}
}

// TestWhoTakesAPackageOverDoesNotTakeItBack to older content than another variant has published.
func TestWhoTakesAPackageOverDoesNotTakeItBack(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	first := p.variant(always, func(s *packagesv1.PackageVariantSpec) { s.DeletionPolicy = packagesv1.DeletionOrphan })
	p.published(first, "v1")
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.published(first, "v2")
	p.delete(first)
	p.gone(first)
	heir := p.variantNamed("heir", always, func(s *packagesv1.PackageVariantSpec) {
		s.AdoptionPolicy, s.Upstream.Revision, s.Downstream.Package = packagesv1.AdoptExisting, 1, "app"
	})
	p.waitsForAPerson(heir, cluster, "app:1.0.0", packagesv1.OlderUpstreamReason, "v2")
}
