package packages_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// remove approves a removal, as a person does who has reviewed the commit.
func (p *plane) remove(r *packagesv1.PackageRevision) {
	p.Helper()
	p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecycleDeleted, r.Status.Commit })
}

// expires waits until an approval to remove has expired, with the words, and is not asked for any more.
func (p *plane) expires(r *packagesv1.PackageRevision, words string) {
	p.Helper()
	until(p, r, "the approval expires", func(r *packagesv1.PackageRevision) (bool, string) {
		approved := conditions.GetMessage(r, packagesv1.ApprovedCondition)
		return r.Spec.Lifecycle != packagesv1.LifecycleDeleted && r.Spec.ApprovedCommit == "" && strings.Contains(approved, words) && conditions.IsReady(r),
			fmt.Sprintf("asked for %s at %q, %q: %s", r.Spec.Lifecycle, r.Spec.ApprovedCommit, approved, said(r))
	})
	p.events.mu.Lock()
	defer p.events.mu.Unlock()
	if told := strings.Join(p.events.events, "\n"); !strings.Contains(told, r.Name+" Warning "+packagesv1.ApprovalExpiredReason) {
		p.Errorf("no event says that the approval has expired:\n%s", told)
	}
}

// work commits to the variant's draft, as a person does.
func (p *plane) work(v *packagesv1.PackageVariant, in *upstream.Edited) (commit string) {
	p.Helper()
	commit = in.Commit("drafts/app/"+v.Status.Change.Workspace, "hours of work", upstream.Text(map[string]string{"app/notes.txt": "hours of work\n"}))
	until(p, v, "the work is seen", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil && v.Status.Change.Commit == commit && conditions.IsReady(v), said(v)
	})
	return commit
}

// TestDeletedRevisionsComeBack: deleting an object changes nothing in Git, whatever it stands for. A draft is discarded by an approval that
// names its commit.
func TestDeletedRevisionsComeBack(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	work := p.work(v, cluster)
	cluster.SetRef("refs/heads/drafts/app/mine", strings.TrimSpace(cluster.Raw("rev-parse", "main")))
	mine := cluster.Commit("drafts/app/mine", "mine", upstream.Text(map[string]string{"app/mine.txt": "days of work\n"}))
	cluster.SetRef("refs/heads/deletionProposed/app/v1", strings.TrimSpace(cluster.Raw("rev-parse", "app/v1")))
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	before := refs(cluster)
	var list packagesv1.PackageRevisionList
	all := func(ctx context.Context) (bool, string) {
		list = packagesv1.PackageRevisionList{}
		if err := env.Client.List(ctx, &list, client.InNamespace(p.namespace)); err != nil {
			return false, err.Error()
		}
		shown := ""
		for i := range list.Items {
			if r := &list.Items[i]; r.Spec.Repository == "cluster" && conditions.IsReady(r) && r.DeletionTimestamp.IsZero() {
				shown += r.Status.Commit + " "
			}
		}
		return len(strings.Fields(shown)) == 3 && strings.Contains(shown, work) && strings.Contains(shown, mine), shown
	}
	testenv.Eventually(t, "all is shown", all)
	for i := range list.Items {
		p.delete(&list.Items[i])
		p.gone(&list.Items[i])
	}
	testenv.Eventually(t, "all is shown again", all)
	if now := refs(cluster); now != before {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
	}
	draft := &packagesv1.PackageRevision{ObjectMeta: p.meta(v.Status.Change.PackageRevision)}
	until(p, draft, "the draft is shown", func(r *packagesv1.PackageRevision) (bool, string) { return r.Status.Commit == work, said(r) })
	p.ask(draft, func() { draft.Spec.Lifecycle, draft.Spec.ApprovedCommit = packagesv1.LifecycleDeleted, mine })
	p.expires(draft, "spec.approvedCommit is "+mine)
	p.remove(draft)
	testenv.Eventually(t, "the draft is discarded", func(context.Context) (bool, string) {
		got := refs(cluster)
		return !strings.Contains(got, work) && strings.Contains(got, mine), got
	})
}

// definition is the CustomResourceDefinition of a kind.
func definition(plural string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(plural + ".packages.sluice.dev")
	return crd
}

// TestADeletedKindChangesNothingInGit, whichever it is, nor do all of them. No other test runs at the same time.
func TestADeletedKindChangesNothingInGit(t *testing.T) { //nolint:paralleltest // The kinds are everybody's.
	for _, kinds := range [][]string{
		{"packagerevisions"}, {"packagevariants"}, {"packagerevisions", "packagevariants", "packagevariantsets", "repositories"},
	} {
		t.Run(strings.Join(kinds, " "), func(t *testing.T) {
			clearKinds(t)
			p := newPlane(t)
			v, cluster := p.changed()
			p.work(v, cluster)
			cluster.SetRef("refs/heads/deletionProposed/app/v1", strings.TrimSpace(cluster.Raw("rev-parse", "app/v1")))
			p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
			before := refs(cluster)
			again := make([]*unstructured.Unstructured, 0, len(kinds))
			for _, kind := range kinds {
				crd := definition(kind)
				if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
					t.Fatal(err)
				}
				made := definition(kind)
				made.Object["spec"] = crd.Object["spec"]
				made.SetAnnotations(crd.GetAnnotations())
				again = append(again, made)
				p.delete(crd)
			}
			for _, kind := range kinds {
				testenv.Eventually(t, kind+" are not served any more", func(ctx context.Context) (bool, string) {
					err := env.Client.Get(ctx, client.ObjectKeyFromObject(definition(kind)), definition(kind))
					return apierrors.IsNotFound(err), fmt.Sprint(err)
				})
			}
			p.stop()
			if now := refs(cluster); now != before {
				t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
			}
			p.create(asObjects(again)...)
			for _, kind := range kinds {
				crd := definition(kind)
				testenv.Eventually(t, kind+" are served again", func(ctx context.Context) (bool, string) {
					list := &unstructured.UnstructuredList{}
					list.SetGroupVersionKind(packagesv1.GroupVersion.WithKind(fmt.Sprint(kindOf(crd, again)) + "List"))
					err := env.Client.List(ctx, list)
					return err == nil, fmt.Sprint(err)
				})
			}
		})
	}
}

// clearKinds removes the objects that tests before have left: no controller does so any more, and they would keep their kinds.
func clearKinds(t *testing.T) {
	t.Helper()
	for _, kind := range []string{packagesv1.PackageRevisionKind, packagesv1.PackageVariantKind, packagesv1.RepositoryKind, packagesv1.PackageVariantSetKind} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(packagesv1.GroupVersion.WithKind(kind + "List"))
		if err := env.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			left := &list.Items[i]
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := cmp.Or(env.Client.Patch(t.Context(), left, patch), env.Client.Delete(t.Context(), left)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

func asObjects(all []*unstructured.Unstructured) (objects []client.Object) {
	for _, one := range all {
		objects = append(objects, one)
	}
	return objects
}

// kindOf is the kind that a definition of the name defines.
func kindOf(crd *unstructured.Unstructured, all []*unstructured.Unstructured) string {
	for _, one := range all {
		if kind, _, err := unstructured.NestedString(one.Object, "spec", "names", "kind"); err == nil && one.GetName() == crd.GetName() {
			return kind
		}
	}
	return ""
}

// TestAVariantThatIsReplacedWithdrawsTheProposedDeletion, and keeps people's work on the draft.
func TestAVariantThatIsReplacedWithdrawsTheProposedDeletion(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	work := p.work(v, cluster)
	p.delete(v)
	p.gone(v)
	if got := refs(cluster); !strings.Contains(got, "deletionProposed/app/v1") || !strings.Contains(got, work) {
		t.Fatalf("the refs are\n%s", got)
	}
	r := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	p.has(said(r), p.namespace+"/app", string(v.UID))
	p.events.mu.Lock()
	told := strings.Join(p.events.events, "\n")
	p.events.mu.Unlock()
	p.has(told, "app Warning "+packagesv1.DraftKeptReason)
	again := p.variant(initial)
	p.revision(r.Name, packagesv1.LifecyclePublished)
	until(p, again, "it keeps the package again, with the draft", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Published != nil && v.Status.Change != nil, said(v)
	})
	if got := refs(cluster); strings.Contains(got, "deletionProposed") || cluster.Raw("for-each-ref", "--contains", work) == "" {
		t.Errorf("the refs are\n%s", got)
	}
}

// TestAMoveThatIsTakenBackLosesNothing: a typing error in downstream.package, while somebody works on the draft.
func TestAMoveThatIsTakenBackLosesNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	work := p.work(v, cluster)
	p.ask(v, func() { v.Spec.Downstream.Package = "apq" })
	until(p, v, "the other package is published", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Downstream.Package == "apq" && v.Status.Published != nil, said(v)
	})
	p.ask(v, func() { v.Spec.Downstream.Package = "app" })
	until(p, v, "it is back", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Downstream.Package == "app" && v.Status.Change != nil, said(v)
	})
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	if got := refs(cluster); strings.Contains(got, "deletionProposed/app/") || cluster.Raw("for-each-ref", "--contains", work) == "" {
		t.Errorf("the refs are\n%s", got)
	}
}

// TestAnApprovalToRemoveExpires where it cannot be carried out at once: it is not carried out later.
func TestAnApprovalToRemoveExpires(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(readme)
	v := p.variant(initial)
	p.published(v, "v1")
	r := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleDeletionProposed })
	r = p.revision(r.Name, packagesv1.LifecycleDeletionProposed)
	p.remove(r)
	p.expires(r, "PackageVariant "+p.namespace+"/app manages the package")

	before := cluster.Tree("main")["app/deployment.yaml"]
	cluster.Commit("main", "a hotfix", upstream.Text(map[string]string{"app/deployment.yaml": strings.Replace(before.Content, "replicas: 1", "replicas: 3", 1)}))
	p.delete(v)
	p.gone(v)
	r = p.revision(r.Name, packagesv1.LifecycleDeletionProposed)
	p.remove(r)
	p.expires(r, "the branch has tree")

	repository := p.packages("cluster")
	p.ask(repository, func() { repository.Spec.Suspend = true })
	until(p, repository, "it is suspended", func(r *packagesv1.Repository) (bool, string) { return r.Spec.Suspend, "" })
	p.remove(r)
	until(p, r, "the approval expires", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Spec.Lifecycle == packagesv1.LifecycleDeletionProposed && strings.Contains(conditions.GetMessage(r, packagesv1.ApprovedCondition), "is suspended"), said(r)
	})
	p.ask(repository, func() { repository.Spec.Suspend = false })
	cluster.Commit("main", "revert the hotfix", upstream.Files{"app/deployment.yaml": before})
	p.again(repository, func() string { return repository.Status.LastHandledReconcileAt })
	r = p.revision(r.Name, packagesv1.LifecycleDeletionProposed)
	if got := cluster.Tree("main")["app/deployment.yaml"]; got != before {
		t.Errorf("the package was removed: %v", got)
	}
	p.remove(r)
	testenv.Eventually(t, "the package is removed", func(context.Context) (bool, string) {
		files := paths(cluster.Tree("main"))
		return len(files) == 1, fmt.Sprint(files)
	})
	p.gone(r)
}

// TestAVariantWithoutItsGitRepositoryKeepsItsPackage: as in the middle of a restore, its URL is not known, and it may be that of the other one.
func TestAVariantWithoutItsGitRepositoryKeepsItsPackage(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.stocked(readme)
	v := p.variant(initial)
	p.published(v, "v1")
	source, twin := p.source("twin", p.server), p.packages("twin")
	source.Spec.URL = p.server.URL("cluster.git")
	p.create(source, twin)
	r := p.shown("twin", "packagevariant-1", packagesv1.LifecyclePublished)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleDeletionProposed })
	r = p.revision(r.Name, packagesv1.LifecycleDeletionProposed)
	p.delete(&sourcev1.GitRepository{ObjectMeta: p.meta("cluster")})
	p.remove(r)
	p.expires(r, "PackageVariant "+p.namespace+"/app manages the package")
}

// TestOnlyTheNewestRevisionIsRemoved: an older one is in the history, and a request for it does not hang.
func TestOnlyTheNewestRevisionIsRemoved(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	v := p.variant(always)
	p.published(v, "v1")
	old := p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.published(v, "v2")
	p.ask(old, func() { old.Spec.Lifecycle = packagesv1.LifecycleDeletionProposed })
	fails(p, old, packagesv1.InvalidTransitionReason, "only the newest revision, v2, can be removed")
	p.ask(old, func() { old.Spec.Lifecycle = packagesv1.LifecyclePublished })
	p.delete(v)
	p.gone(v)
	cluster.SetRef("refs/heads/deletionProposed/app/v1", strings.TrimSpace(cluster.Raw("rev-parse", "app/v1")))
	before := refs(cluster)
	old = p.revision(old.Name, packagesv1.LifecycleDeletionProposed)
	p.remove(old)
	p.expires(old, "is not the newest revision")
	if now := refs(cluster); now != before {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, before)
	}
}
