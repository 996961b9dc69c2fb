package packages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// initial has the controller approve the first revision.
func initial(s *packagesv1.PackageVariantSpec) {
	s.Approval = &packagesv1.Approval{Policy: packagesv1.ApprovalInitial}
}

// changed publishes app/v1 of the variant app, and opens the draft of an update to app/v2.
func (p *plane) changed(change ...func(*packagesv1.PackageVariantSpec)) (*packagesv1.PackageVariant, *upstream.Edited) {
	p.Helper()
	blueprints, cluster := p.stocked(readme)
	v := p.variant(append(change, initial)...)
	p.published(v, "v1")
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	return v, cluster
}

// revision is the object of a revision, in the lifecycle.
func (p *plane) revision(name string, lifecycle packagesv1.Lifecycle) *packagesv1.PackageRevision {
	p.Helper()
	r := &packagesv1.PackageRevision{ObjectMeta: p.meta(name)}
	until(p, r, "the revision is "+string(lifecycle), func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == lifecycle && r.Spec.Lifecycle == lifecycle && conditions.IsReady(r), fmt.Sprintf("%s, asked for %s: %s", r.Status.Lifecycle, r.Spec.Lifecycle, said(r))
	})
	return r
}

// revisions are all there are, by workspace.
func (p *plane) lifecycles() map[string]packagesv1.Lifecycle {
	p.Helper()
	var list packagesv1.PackageRevisionList
	if err := env.Client.List(p.Context(), &list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	all := map[string]packagesv1.Lifecycle{}
	for i := range list.Items {
		if r := &list.Items[i]; r.Spec.Repository == "cluster" {
			all[r.Spec.Workspace] = r.Status.Lifecycle
		}
	}
	return all
}

// TestAVariantThatGoesDropsItsChange, also where that is proposed, and what it proposes for the rest can be refused.
func TestAVariantThatGoesDropsItsChange(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	branch := strings.TrimSpace(cluster.Raw("rev-parse", "main"))
	change := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	p.ask(change, func() { change.Spec.Lifecycle = packagesv1.LifecycleProposed })
	p.revision(change.Name, packagesv1.LifecycleProposed)
	p.delete(v)
	p.gone(v)
	if got := refs(cluster); strings.Contains(got, "/drafts/") || strings.Contains(got, "/proposed/") || !strings.Contains(got, "refs/heads/deletionProposed/app/v1") {
		t.Errorf("the refs are\n%s", got)
	}
	r := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecyclePublished })
	p.revision(r.Name, packagesv1.LifecyclePublished)
	if got := refs(cluster); strings.Contains(got, "deletionProposed") || strings.TrimSpace(cluster.Raw("rev-parse", "main")) != branch {
		t.Errorf("the refs are\n%s", got)
	}
}

// TestOrphanLeavesEverything, a draft that is open among it.
func TestOrphanLeavesEverything(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed(func(s *packagesv1.PackageVariantSpec) { s.DeletionPolicy = packagesv1.DeletionOrphan })
	before := refs(cluster)
	p.delete(v)
	p.gone(v)
	if now := refs(cluster); now != before {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
	}
}

// TestANamespaceThatGoesLeavesGit, in whatever order its objects go.
func TestANamespaceThatGoesLeavesGit(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	cluster.SetRef("refs/heads/deletionProposed/app/v1", strings.TrimSpace(cluster.Raw("rev-parse", "app/v1")))
	r := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	draft := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	before := refs(cluster)
	p.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	for _, obj := range []client.Object{draft, r, v, p.packages("cluster"), p.packages("blueprints")} {
		if err := env.Client.Delete(t.Context(), obj); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		p.gone(obj)
	}
	if now := refs(cluster); now != before {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
	}
}

// TestARepositoryMadeAnewHasWhatItHad: nothing is lost or doubled, and in between nobody is held up.
func TestARepositoryMadeAnewHasWhatItHad(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	draft := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	before := refs(cluster)
	repository := p.packages("cluster")
	p.delete(repository)
	fails(p, v, packagesv1.RepositoryNotFoundReason, "cluster")
	p.gone(repository)
	p.gone(draft)
	stray := &packagesv1.PackageRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "stray", Finalizers: []string{packagesv1.RevisionFinalizer}},
		Spec:       packagesv1.PackageRevisionSpec{Repository: "cluster", Package: "app", Workspace: "v1", Lifecycle: packagesv1.LifecyclePublished},
	}
	p.create(stray)
	p.gone(stray)
	second := p.variantNamed("second")
	fails(p, second, packagesv1.RepositoryNotFoundReason, "cluster")
	p.delete(second)
	p.gone(second)
	p.create(p.packages("cluster"))
	until(p, v, "the draft is known", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Change != nil && v.Status.Published != nil, said(v)
	})
	p.revision(draft.Name, packagesv1.LifecycleDraft)
	if now := refs(cluster); now != before {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
	}
	if got := p.lifecycles(); len(got) != 2 {
		t.Errorf("the revisions are %v", got)
	}
}

// TestWhatNobodyHasSeenIsNotTakenAway: who deletes an object that says something else than Git, or nothing yet, approves of
// nothing. It is shown again.
func TestWhatNobodyHasSeenIsNotTakenAway(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	r := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	draft := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	p.stop()
	cluster.SetRef("refs/heads/deletionProposed/app/v1", strings.TrimSpace(cluster.Raw("rev-parse", "app/v1")))
	before := refs(cluster)
	anew := draft.DeepCopy()
	anew.ObjectMeta = metav1.ObjectMeta{Namespace: p.namespace, Name: draft.Name, Finalizers: draft.Finalizers}
	anew.Status = packagesv1.PackageRevisionStatus{}
	p.ask(draft, func() { draft.Finalizers = nil })
	p.delete(draft)
	p.gone(draft)
	p.create(anew)
	p.delete(anew)
	p.delete(r)
	p.start()
	for _, deleted := range []*packagesv1.PackageRevision{r, anew} {
		uid := deleted.UID
		until(p, deleted, "it is shown again", func(r *packagesv1.PackageRevision) (bool, string) {
			return r.UID != uid && conditions.IsReady(r), said(r)
		})
	}
	if now := refs(cluster); now != before {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
	}
}

// TestWhatNobodyLookedAtIsNotDropped: the object of a draft comes back with what somebody has pushed since.
func TestWhatNobodyLookedAtIsNotDropped(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) { p.interval = time.Hour })
	v, cluster := p.changed()
	draft := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	until(p, draft, "the draft is shown", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Commit == v.Status.Change.Commit, said(r)
	})
	cluster.Moved = nil
	branch := "drafts/app/" + v.Status.Change.Workspace
	edited := cluster.Tree(branch)
	edited["app/notes.txt"] = upstream.File{Content: "hours of work\n"}
	work := cluster.Commit(branch, "notes", edited)
	uid := draft.UID
	p.delete(draft)
	until(p, draft, "it is shown again", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.UID != uid && r.Status.Commit == work && conditions.IsReady(r), said(r)
	})
	if got := refs(cluster); !strings.Contains(got, work) {
		t.Errorf("the edit is lost; the refs are\n%s", got)
	}
}

// TestAVariantThatGoesWaitsForWhatCannotBeRead: as long as nobody can tell whose a draft is, it is not left behind.
func TestAVariantThatGoesWaitsForWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	branch := "drafts/app/" + v.Status.Change.Workspace
	edited := cluster.Tree(branch)
	whole := edited["app/Kptfile"]
	edited["app/Kptfile"] = upstream.File{Content: "a: b: c\n"}
	cluster.Commit(branch, "a mistake", edited)
	fails(p, v, packagesv1.InvalidPackageReason, "drafts/app")
	p.delete(v)
	until(p, v, "it says what it waits for", func(v *packagesv1.PackageVariant) (bool, string) {
		return !v.DeletionTimestamp.IsZero() && v.Status.ObservedGeneration == v.Generation && conditions.GetReason(v, "Ready") == packagesv1.InvalidPackageReason, said(v)
	})
	edited["app/Kptfile"] = whole
	cluster.Commit(branch, "mended", edited)
	p.gone(v)
	if got := refs(cluster); !strings.Contains(got, "/drafts/") || !strings.Contains(got, "deletionProposed/app/v1") {
		t.Errorf("the refs are\n%s", got) // People have committed to the draft.
	}
}
