package packages_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// TestBranchesOfOneRepositoryHaveTheirOwnRevisions: they share tags and branches of changes, and neither follows, reports or proposes to
// delete revisions of the other.
func TestBranchesOfOneRepositoryHaveTheirOwnRevisions(t *testing.T) {
	t.Parallel()
	p := newPlane(t, frequent)
	blueprints, cluster := p.stocked(readme)
	prod := p.packages("prod")
	prod.Spec.GitRepositoryRef.Name, prod.Spec.Branch = "cluster", "prod"
	p.create(prod)
	cluster.SetRef("refs/heads/prod", strings.TrimSpace(cluster.Raw("rev-parse", "main")))
	stage := p.variantNamed("stage", always)
	p.published(stage, "v1")
	// The draft of main's variant is open while prod's is made.
	p.ask(stage, func() { stage.Spec.Approval = nil })
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.drafted(stage, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	elsewhere := p.shown("prod", stage.Status.Change.Workspace, packagesv1.LifecycleDraft)
	p.ask(elsewhere, func() { elsewhere.Spec.Lifecycle = packagesv1.LifecycleProposed })
	fails(p, elsewhere, packagesv1.OtherBranchReason, "/stage made the change for another branch than prod")
	inProd := p.variantNamed("in-prod", func(s *packagesv1.PackageVariantSpec) {
		s.Downstream.Repo, s.Upstream.Revision = "prod", 1
		always(s)
	})
	p.published(inProd, "v2")
	p.ask(stage, func() { always(&stage.Spec) })
	p.published(stage, "v3")

	reader := p.variantNamed("reader", func(s *packagesv1.PackageVariantSpec) {
		s.Upstream = packagesv1.Upstream{Repo: "prod", Package: "app"}
		s.Downstream = packagesv1.Downstream{Repo: "cluster", Package: "copy"}
		always(s)
	})
	p.published(reader, "v1")
	if got := reader.Status.Upstream.Revision; got != "v2" {
		t.Errorf("what follows prod has revision %s", got)
	}
	p.has(cluster.Tree("main")["copy/deployment.yaml"].Content, "image: example.com/app:1.0.0")
	p.look("prod")
	until(p, inProd, "prod keeps its revision", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Published.Revision == "v2", said(v)
	})
	p.delete(inProd)
	p.gone(inProd)
	p.revision(inProd.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	p.has(refs(cluster), "refs/heads/deletionProposed/app/v2")
	p.hasNot(refs(cluster), "refs/heads/deletionProposed/app/v1", "refs/heads/deletionProposed/app/v3")
	p.revision(stage.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
}

// shown is the object of the workspace in a Repository.
func (p *plane) shown(repository, workspace string, lifecycle packagesv1.Lifecycle) (found *packagesv1.PackageRevision) {
	p.Helper()
	testenv.Eventually(p.T, workspace+" is shown in Repository "+repository, func(context.Context) (bool, string) {
		for _, r := range p.revisions("app") {
			if r.Spec.Repository == repository && r.Spec.Workspace == workspace {
				found = &r
			}
		}
		return found != nil, ""
	})
	return p.revision(found.Name, lifecycle)
}
