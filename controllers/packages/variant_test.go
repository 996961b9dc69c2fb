package packages_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// TestAVariantIsDraftedProposedAndPublished, and follows upstream with a person's edit kept.
func TestAVariantIsDraftedProposedAndPublished(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	first := blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": deployment}))
	blueprints.Tag("app/v1", first, false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))

	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.Labels = map[string]string{"team": "blue"} })
	files := p.drafted(v, cluster, func(upstream.Files) bool { return true })
	if got := files["app/deployment.yaml"].Content; got != deployment {
		t.Errorf("the manifest is\n%s", got)
	}
	p.publish(v)
	if files := cluster.Tree("main"); !strings.Contains(files["app/Kptfile"].Content, "team: blue") || files["README.md"].Content != "hello\n" {
		t.Errorf("the branch has %v: %s", paths(files), files["app/Kptfile"].Content)
	}

	edited := cluster.Tree("main")
	edited["app/deployment.yaml"] = upstream.File{Content: strings.ReplaceAll(deployment, "replicas: 1", "replicas: 5")}
	cluster.Commit("main", "more of it", edited)
	second := blueprints.Commit("main", "newer", upstream.Text(map[string]string{
		"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", "2.0.0"),
	}))
	blueprints.Tag("app/v2", second, false)
	files = p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	if got := files["app/deployment.yaml"].Content; !strings.Contains(got, "replicas: 5") {
		t.Errorf("the edit is lost:\n%s", got)
	}
	p.publish(v)
}

// publish proposes and approves the variant's draft, as a person does.
func (p *plane) publish(v *packagesv1.PackageVariant) {
	p.Helper()
	revision := &packagesv1.PackageRevision{ObjectMeta: p.meta(v.Status.Change.PackageRevision)}
	until(p, revision, "the revision is drafted", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecycleDraft && r.Status.Commit == v.Status.Change.Commit &&
			r.Status.Artifact != nil && strings.HasSuffix(r.Status.Artifact.Revision, r.Status.Commit), said(r)
	})
	p.ask(revision, func() { revision.Spec.Lifecycle = packagesv1.LifecycleProposed })
	until(p, revision, "the revision is proposed", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecycleProposed, said(r)
	})
	p.ask(revision, func() {
		revision.Spec.Lifecycle, revision.Spec.ApprovedCommit = packagesv1.LifecyclePublished, revision.Status.Commit
		revision.Spec.ApprovedConflicts = v.Status.Change.ConflictDigest
	})
	until(p, revision, "the revision is published", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecyclePublished && conditions.IsReady(r), said(r)
	})
	until(p, v, "the variant is published", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Published != nil && v.Status.Published.Commit == revision.Status.Commit && v.Status.Change == nil && conditions.IsReady(v), said(v)
	})
}

// ask changes an object's spec.
func (p *plane) ask(obj client.Object, change func()) {
	p.Helper()
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		p.Fatalf("%T is no object", obj)
	}
	change()
	if err := env.Client.Patch(p.Context(), obj, client.MergeFrom(before)); err != nil {
		p.Fatal(err)
	}
}

// TestAVariantThatFailedCanBeDeleted: nobody is told that it is well again, and it goes.
func TestAVariantThatFailedCanBeDeleted(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.repository("blueprints")
	p.repository("cluster").Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant()
	until(p, v, "there is nothing upstream", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.GetReason(v, "Ready") == packagesv1.UpstreamNotFoundReason, said(v)
	})
	if err := env.Client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the variant is gone", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(v), v)
		return apierrors.IsNotFound(err), said(v)
	})
}
