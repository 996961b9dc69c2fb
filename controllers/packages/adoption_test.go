package packages_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/variant"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// plain is the package app without anything special.
func plain(image string) upstream.Files {
	return upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image)})
}

// stocked makes the repositories blueprints, with app/v1, and cluster, with the files.
func (p *plane) stocked(files map[string]string) (blueprints, cluster *upstream.Edited) {
	p.Helper()
	blueprints, cluster = p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	cluster.Commit("main", "begin", upstream.Text(files))
	return blueprints, cluster
}

// readme is what a repository without packages has.
var readme = map[string]string{"README.md": "hello\n"}

// always has the controller approve everything.
func always(s *packagesv1.PackageVariantSpec) {
	s.Approval = &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}
}

// published waits until the variant's package is published as the revision.
func (p *plane) published(v *packagesv1.PackageVariant, revision string) {
	p.Helper()
	until(p, v, "it is published as "+revision, func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Published != nil && v.Status.Published.Revision == revision && v.Status.Change == nil, said(v)
	})
}

// fails waits until the object is not ready for the reason, with the words.
func fails[O interface {
	client.Object
	conditions.Getter
}](p *plane, obj O, reason, words string) {
	p.Helper()
	until(p, obj, "it fails for "+reason, func(obj O) (bool, string) {
		return conditions.IsFalse(obj, "Ready") && conditions.GetReason(obj, "Ready") == reason && strings.Contains(conditions.GetMessage(obj, "Ready"), words), said(obj)
	})
}

// delete deletes the object, and gone waits until it is.
func (p *plane) delete(obj client.Object) {
	p.Helper()
	if err := env.Client.Delete(p.Context(), obj); err != nil {
		p.Fatal(err)
	}
}

func (p *plane) gone(obj client.Object) {
	p.Helper()
	uid := obj.GetUID() // Its name may be another's right after.
	testenv.Eventually(p.T, obj.GetName()+" is gone", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		getter, _ := obj.(conditions.Getter)
		return apierrors.IsNotFound(err) || err == nil && uid != "" && obj.GetUID() != uid, "it is there: " + said(getter)
	})
}

// refs are all refs of a repository, with what they lead to.
func refs(of *upstream.Edited) string { return of.Raw("for-each-ref") }

// TestAPackageOfPeopleIsAdoptedIfTheVariantMay, and with it everything that is in it.
func TestAPackageOfPeopleIsAdoptedIfTheVariantMay(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(map[string]string{
		"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(deployment, "replicas: 1", "replicas: 7"), "app/notes.txt": "ours\n",
	})
	before := refs(cluster)
	v := p.variant(always)
	fails(p, v, packagesv1.NotOwnedReason, "adoptExisting")
	if now := refs(cluster); now != before {
		t.Errorf("a package of others was touched:\n%s", now)
	}
	p.ask(v, func() {
		v.Spec.AdoptionPolicy, v.Spec.ConflictPolicy = packagesv1.AdoptExisting, packagesv1.ConflictLocal
	})
	// The spec approves no conflicts: people's files differ from upstream's.
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	p.publish(v)
	files := cluster.Tree("main")
	if !strings.Contains(files["app/deployment.yaml"].Content, "replicas: 7") || files["app/notes.txt"].Content != "ours\n" {
		t.Errorf("what people had is lost: %v\n%s", paths(files), files["app/deployment.yaml"].Content)
	}
	if got := files["app/Kptfile"].Content; !strings.Contains(got, v.Namespace+"/app") || !strings.Contains(got, "upstreamLock") {
		t.Errorf("the Kptfile does not say whose it is:\n%s", got)
	}
}

// TestOfTwoVariantsOneHasThePackage, and the other takes over when that one has gone.
func TestOfTwoVariantsOneHasThePackage(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(readme)
	first := p.variantNamed("first")
	p.drafted(first, cluster, func(upstream.Files) bool { return true })
	second := p.variantNamed("second", always)
	fails(p, second, packagesv1.NotOwnedReason, "is kept by PackageVariant "+p.namespace+"/first")
	p.delete(first)
	p.gone(first)
	p.published(second, "v1")

	third := p.variantNamed("third")
	fails(p, third, packagesv1.NotOwnedReason, "is kept by PackageVariant "+p.namespace+"/second")
	p.delete(second)
	p.gone(second)
	fails(p, third, packagesv1.NotOwnedReason, "which keeps it no more")
	revision := &packagesv1.PackageRevision{ObjectMeta: p.meta(second.Status.Published.PackageRevision)}
	until(p, revision, "the deletion is proposed", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecycleDeletionProposed, said(r)
	})
	p.remove(revision)
	p.drafted(third, cluster, func(upstream.Files) bool { return true })
	if got := third.Status.Change.Workspace; got != "packagevariant-2" {
		t.Errorf("the workspace is %s: a name was used twice", got)
	}
}

// TestWhatAGoneVariantLeftIsAdopted: the package and the draft that is open, in place of a second one.
func TestWhatAGoneVariantLeftIsAdopted(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	first := p.variantNamed("first", func(s *packagesv1.PackageVariantSpec) {
		s.DeletionPolicy, s.Approval = packagesv1.DeletionOrphan, &packagesv1.Approval{Policy: packagesv1.ApprovalInitial}
		s.Labels = map[string]string{"of": "first"}
	})
	p.published(first, "v1")
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.drafted(first, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	draft := "drafts/app/" + first.Status.Change.Workspace
	edited := cluster.Tree(draft)
	edited["app/notes.txt"] = upstream.File{Content: "ours\n"}
	cluster.Commit(draft, "notes", edited)
	before := refs(cluster)
	p.delete(first)
	p.gone(first)
	if now := refs(cluster); now != before {
		t.Errorf("an orphan was touched:\n%s\nbefore:\n%s", now, before)
	}

	second := p.variantNamed("second")
	fails(p, second, packagesv1.NotOwnedReason, "was kept by PackageVariant "+p.namespace+"/first")
	p.ask(second, func() { second.Spec.AdoptionPolicy = packagesv1.AdoptExisting })
	files := p.drafted(second, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/Kptfile"].Content, "/second") })
	if got := files["app/Kptfile"].Content; strings.Contains(got, "first") || files["app/notes.txt"].Content != "ours\n" {
		t.Errorf("the draft has %v, and its Kptfile is\n%s", paths(files), got)
	}
	if got := strings.Count(refs(cluster), "refs/heads/drafts/"); got != 1 {
		t.Errorf("%d drafts are open", got)
	}
	p.publish(second)
}

// holding renders once it is let go.
type holding struct {
	variant.Renderer

	begun, free func()
	wait        chan struct{}
}

func newHolding(r variant.Renderer) (h *holding, begun chan struct{}) {
	begun = make(chan struct{})
	h = &holding{Renderer: r, wait: make(chan struct{})}
	h.begun, h.free = sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(h.wait) })
	return h, begun
}

func (h *holding) Render(ctx context.Context, p kpt.Package) (kpt.Package, []function.Result, error) {
	h.begun()
	select {
	case <-h.wait:
	case <-ctx.Done():
	}
	return h.Renderer.Render(ctx, p)
}

// TestAnOrderOfBeforeTakesNothingOver: what a variant had ordered while another one's draft was being written is not carried out.
func TestAnOrderOfBeforeTakesNothingOver(t *testing.T) {
	t.Parallel()
	var held *holding
	var begun chan struct{}
	p := newPlane(t, func(p *plane) {
		held, begun = newHolding(p.renderer)
		p.renderer = held
	})
	_, cluster := p.stocked(readme)
	first := p.variantNamed("first")
	<-begun
	second := p.variantNamed("second")
	until(p, second, "it has ordered", func(v *packagesv1.PackageVariant) (bool, string) { return conditions.IsReconciling(v), said(v) })
	held.free()
	p.drafted(first, cluster, func(upstream.Files) bool { return true })
	fails(p, second, packagesv1.NotOwnedReason, "/first")
	p.ask(first, func() { first.Spec.Labels = map[string]string{"a": "b"} })
	p.drafted(first, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/Kptfile"].Content, "a: b") })
	if got := refs(cluster); strings.Count(got, "refs/heads/drafts/") != 1 {
		t.Errorf("there is not one draft:\n%s", got)
	}
}

// TestAVariantThatComesBackBeginsNoSecondDraft: another one has taken over what it left, and the draft of that is open.
func TestAVariantThatComesBackBeginsNoSecondDraft(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	orphan := func(s *packagesv1.PackageVariantSpec) { s.DeletionPolicy = packagesv1.DeletionOrphan }
	first, cluster := p.changed(orphan)
	p.delete(first)
	p.gone(first)
	second := p.variantNamed("second", func(s *packagesv1.PackageVariantSpec) { s.AdoptionPolicy = packagesv1.AdoptExisting })
	p.drafted(second, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/Kptfile"].Content, "/second") })

	again := p.variant(orphan)
	fails(p, again, packagesv1.NotOwnedReason, "is kept by PackageVariant "+p.namespace+"/second")
	if got := refs(cluster); strings.Count(got, "refs/heads/drafts/") != 1 {
		t.Errorf("there is not one draft:\n%s", got)
	}
	p.delete(second)
	p.gone(second)
	p.drafted(again, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/Kptfile"].Content, "/app") })
}

// TestAVariantIsNotMadeOfItself: what it publishes would be what it follows, without end.
func TestAVariantIsNotMadeOfItself(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cluster := p.repository("cluster")
	cluster.Tag("app/v1", cluster.Commit("main", "app", plain("1.0.0")), false)
	before := refs(cluster)
	v := p.variant(always, func(s *packagesv1.PackageVariantSpec) {
		s.Upstream.Repo, s.AdoptionPolicy = "cluster", packagesv1.AdoptExisting
	})
	until(p, v, "it is refused, or publishes", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsStalled(v) || v.Status.Published != nil && v.Status.Published.Revision == "v3", said(v)
	})
	if now := refs(cluster); now != before || conditions.GetReason(v, "Ready") != packagesv1.InvalidSpecReason {
		t.Errorf("%s; the refs are\n%s", said(v), now)
	}
}
