package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// elsewhere has the variant keep the package under another name.
func (p *plane) elsewhere(v *packagesv1.PackageVariant) {
	p.Helper()
	p.ask(v, func() { v.Spec.Downstream.Package = "other/app" })
}

// TestAVariantThatMovesLetsGo of what it kept before: it drops its change there and proposes to delete what is published, also
// where the controller did not run when the spec was changed. In the new place it begins anew.
func TestAVariantThatMovesLetsGo(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	old := *v.Status.Published
	p.stop()
	p.elsewhere(v)
	p.start()
	p.published(v, "v1")
	if got := *v.Status.Downstream; got.Package != "other/app" {
		t.Errorf("status says that %v is kept", got)
	}
	if got := refs(cluster); strings.Contains(got, "/drafts/") || !strings.Contains(got, "deletionProposed/app/v1") || !strings.Contains(got, "refs/tags/other/app/v1") {
		t.Errorf("the refs are\n%s", got)
	}
	p.remove(p.revision(old.PackageRevision, packagesv1.LifecycleDeletionProposed))
	until(p, v, "the old package leaves the branch", func(*packagesv1.PackageVariant) (bool, string) {
		files := cluster.Tree("main")
		_, was := files["app/Kptfile"]
		_, is := files["other/app/Kptfile"]
		return !was && is, strings.Join(paths(files), " ")
	})
}

// TestAVariantThatMovesLeavesAnOrphan, and comes back to it.
func TestAVariantThatMovesLeavesAnOrphan(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed(func(s *packagesv1.PackageVariantSpec) { s.DeletionPolicy = packagesv1.DeletionOrphan })
	before, draft := refs(cluster), v.Status.Change.Commit
	p.elsewhere(v)
	p.published(v, "v1")
	if got := refs(cluster); !strings.Contains(got, draft) || strings.Contains(got, "deletionProposed") {
		t.Errorf("the refs are\n%s\nbefore:\n%s", got, before)
	}
	p.ask(v, func() { v.Spec.Downstream.Package = "" })
	until(p, v, "the old draft is its own again", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Change != nil && v.Status.Change.Commit == draft, said(v)
	})
}

// TestAVariantMovesOnceItHasLetGo: until then nothing is begun in the new place, also where the old Repository cannot be reached.
// Where that is gone, there is nothing to let go of.
func TestAVariantMovesOnceItHasLetGo(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	away := p.upstreams.HTTP(upstream.HTTPOptions{})
	blueprints, cluster := p.repository("blueprints"), p.upstreams.Repository("away.git")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	cluster.AcceptPushes()
	cluster.Commit("main", "begin", upstream.Text(readme))
	p.create(p.source("away", away), p.packages("away"))
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.Downstream.Repo = "away" })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	away.Always(upstream.Status(500))
	next := p.repository("cluster")
	next.Commit("main", "begin", upstream.Text(readme))

	p.ask(v, func() { v.Spec.DryRun, v.Spec.Downstream.Repo = true, "cluster" })
	until(p, v, "a preview of the new place", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Preview != nil && v.Status.Downstream.Repo == "away", said(v)
	})
	p.ask(v, func() { v.Spec.DryRun = false })
	fails(p, v, packagesv1.RepositoryNotReadyReason, "let go of package app")
	if got := refs(next); strings.Contains(got, "drafts") || v.Status.Downstream.Repo != "away" {
		t.Errorf("the variant has moved: %v, %s", v.Status.Downstream, got)
	}
	p.delete(p.packages("away"))
	p.drafted(v, next, func(upstream.Files) bool { return v.Status.Downstream.Repo == "cluster" })
	if got := refs(cluster); !strings.Contains(got, "drafts/app/packagevariant-1") {
		t.Errorf("a Repository that goes leaves Git alone; the refs are\n%s", got)
	}
}

// TestAnOrderIsForTheRepositoryItWasGivenFor: while it waited, the GitRepository was made to lead to another one, where the package
// is somebody's.
func TestAnOrderIsForTheRepositoryItWasGivenFor(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints := p.repository("blueprints")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	_, away := p.stock("cluster")
	until(p, p.packages("cluster"), "it was read", func(r *packagesv1.Repository) (bool, string) { return conditions.IsReady(r), said(r) })
	away.Always(upstream.Status(500))
	v := p.variant(always)
	fails(p, v, packagesv1.RepositoryNotReadyReason, "cluster")

	other := p.upstreams.Repository("other.git")
	other.AcceptPushes()
	other.Commit("main", "theirs", plain("7.0.0"))
	before := refs(other)
	p.lead("cluster", p.server.URL("other.git"))
	fails(p, v, packagesv1.NotOwnedReason, "adoptExisting")
	if now := refs(other); now != before {
		t.Errorf("what was ordered of one repository was done to another:\n%s", now)
	}
}

// lead makes a GitRepository lead to another URL.
func (p *plane) lead(name, url string) {
	p.Helper()
	source := &sourcev1.GitRepository{ObjectMeta: p.meta(name)}
	p.ask(source, func() { source.Spec.URL = url })
}

// TestUpstreamMayMove to another server, with all it has: people's edits are told by what the package was made of, as before.
func TestUpstreamMayMove(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	first := plain("1.0.0")
	first["app/old.yaml"] = upstream.File{Content: strings.ReplaceAll(deployment, "app", "old")}
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", first), false)
	cluster.Commit("main", "begin", upstream.Text(readme))
	v := p.variant(initial)
	p.published(v, "v1")

	p.lead("blueprints", p.upstreams.HTTP(upstream.HTTPOptions{}).URL("blueprints.git"))
	second := plain("2.0.0")
	second["app/old.yaml"] = upstream.File{Mode: upstream.Removed}
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", second), false)
	files := p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	if _, found := files["app/old.yaml"]; found || v.Status.Change.ConflictCount != 0 {
		t.Errorf("what upstream took out is taken for people's: %v, %+v", paths(files), v.Status.Change.Conflicts)
	}
}
