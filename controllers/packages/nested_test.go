package packages_test

import (
	"context"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// at keeps the package in a folder, with a namespace for its objects.
func at(folder, namespace string) func(*packagesv1.PackageVariantSpec) {
	return func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package, s.Namespace = folder, namespace }
}

// TestAnOuterVariantLeavesAnInnerPackageAlone: no update rewrites it, and it is not removed with the outer package.
func TestAnOuterVariantLeavesAnInnerPackageAlone(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	inner := p.variantNamed("inner", at("edge/web", "web"), always)
	p.published(inner, "v1")
	before := cluster.Tree("main")["edge/web/deployment.yaml"].Content
	p.has(before, "namespace: web")
	outer := p.variantNamed("outer", at("edge", "outer-ns"), always)
	p.published(outer, "v1")
	p.ask(inner, func() {
		inner.Spec.Upstream.Revision, inner.Spec.Approval = 1, &packagesv1.Approval{Policy: packagesv1.ApprovalInitial}
	})
	p.published(inner, "v1")
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.published(outer, "v2")
	files := cluster.Tree("main")
	p.has(files["edge/deployment.yaml"].Content, "2.0.0", "namespace: outer-ns")
	if now := files["edge/web/deployment.yaml"].Content; now != before {
		t.Errorf("the inner package was rewritten:\n%s", now)
	}
	p.published(inner, "v1")

	p.delete(outer)
	p.remove(p.revision(outer.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed))
	testenv.Eventually(t, "the outer package leaves the branch", func(context.Context) (bool, string) {
		_, there := cluster.Tree("main")["edge/Kptfile"]
		return !there, "it is there"
	})
	if now := cluster.Tree("main")["edge/web/deployment.yaml"].Content; now != before {
		t.Errorf("the inner package has become %q", now)
	}
	p.published(inner, "v1")
	if log := cluster.Raw("log", "--format=%s", "main", "--", "edge/web"); strings.Count(log, "\n") != 0 {
		t.Errorf("the inner package was written again:\n%s", log)
	}
}

// TestAnInnerPackageWithoutItsTagIsNotRewritten as long as a variant keeps it: a person has deleted the tag, not the package.
func TestAnInnerPackageWithoutItsTagIsNotRewritten(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	inner := p.variantNamed("inner", at("edge/web", ""), initial)
	p.published(inner, "v1")
	before := cluster.Tree("main")["edge/web/deployment.yaml"].Content
	outer := p.variantNamed("outer", at("edge", "outer-ns"), always)
	p.published(outer, "v1")
	cluster.DeleteRef("refs/tags/edge/web/v1")
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.look("blueprints")
	p.published(outer, "v2")
	if now := cluster.Tree("main")["edge/web/deployment.yaml"].Content; now != before {
		t.Errorf("the inner package was rewritten:\n%s", now)
	}
}

// TestAnInnerPackageStaysWhereTheOuterOneIsRemoved, also if its variant would not publish it again.
func TestAnInnerPackageStaysWhereTheOuterOneIsRemoved(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(readme)
	outer := p.variantNamed("outer", at("edge", "outer-ns"), initial)
	p.published(outer, "v1")
	inner := p.variantNamed("inner", at("edge/web", "web"), initial)
	p.published(inner, "v1")
	before := cluster.Tree("main")
	p.published(outer, "v1")
	p.delete(outer)
	p.remove(p.revision(outer.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed))
	testenv.Eventually(t, "the outer package leaves the branch", func(context.Context) (bool, string) {
		_, there := cluster.Tree("main")["edge/Kptfile"]
		return !there, "it is there"
	})
	now := cluster.Tree("main")
	for _, name := range []string{"edge/web/Kptfile", "edge/web/deployment.yaml"} {
		if before[name].Content == "" || now[name] != before[name] {
			t.Errorf("%s was %q and is %q", name, before[name].Content, now[name].Content)
		}
	}
	p.published(inner, "v1")
}

// TestAFolderOfAnotherPackageIsRefused, as its files have an owner; and what upstream adds in the folder of another package is.
func TestAFolderOfAnotherPackageIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	files := plain("1.0.0")
	files["app/web/Kptfile"] = upstream.File{Content: kptfile}
	blueprints.Tag("app/v2", blueprints.Commit("main", "with a folder", files), false)
	outer := p.variantNamed("outer", at("edge", ""), always)
	p.published(outer, "v1")
	before := refs(cluster)
	inner := p.variantNamed("inner", at("edge/web", "web"), always)
	fails(p, inner, packagesv1.NotOwnedReason, `folder "edge/web" is part of package "edge"`)
	if now := refs(cluster); now != before {
		t.Errorf("a package of others was touched:\n%s", now)
	}

	p.ask(inner, func() { inner.Spec.Downstream.Package = "edge/db" })
	p.published(inner, "v1")
	files["app/db/more.yaml"] = upstream.File{Content: "a: b\n"}
	blueprints.Tag("app/v3", blueprints.Commit("main", "with another folder", files), false)
	fails(p, outer, packagesv1.NotOwnedReason, `file "db/more.yaml" of package "edge" lies in package "edge/db"`)
	if _, there := cluster.Tree("main")["edge/db/more.yaml"]; there {
		t.Error("the file is in the package of others")
	}
}
