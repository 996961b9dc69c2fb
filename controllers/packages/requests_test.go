package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// TestWhatIsAskedOfARevisionIsDoneOrRefused: every lifecycle that can follow, and the approval of another commit.
func TestWhatIsAskedOfARevisionIsDoneOrRefused(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(readme)
	v := p.variant()
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	r := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	main := cluster.Raw("rev-parse", "main")
	request := func(lifecycle packagesv1.Lifecycle, commit string) {
		t.Helper()
		p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = lifecycle, commit })
	}
	request(packagesv1.LifecyclePublished, r.Status.Commit)
	until(p, r, "a draft is not published", func(r *packagesv1.PackageRevision) (bool, string) {
		return conditions.IsStalled(r) && conditions.GetReason(r, "Ready") == packagesv1.InvalidTransitionReason, said(r)
	})
	request(packagesv1.LifecycleProposed, "")
	p.revision(r.Name, packagesv1.LifecycleProposed)
	r = p.revision(r.Name, packagesv1.LifecycleProposed)
	request(packagesv1.LifecyclePublished, strings.Repeat("1", 40))
	fails(p, r, packagesv1.ApprovedCommitMismatchReason, r.Status.Commit)
	if now := cluster.Raw("rev-parse", "main"); now != main {
		t.Error("another commit than the approved one is published")
	}
	request(packagesv1.LifecycleDraft, "")
	r = p.revision(r.Name, packagesv1.LifecycleDraft)
	if got := refs(cluster); strings.Contains(got, "/proposed/") || !strings.Contains(got, "/drafts/") {
		t.Errorf("the proposal was not set back:\n%s", got)
	}
	request(packagesv1.LifecycleProposed, "")
	r = p.revision(r.Name, packagesv1.LifecycleProposed)
	request(packagesv1.LifecyclePublished, r.Status.Commit)
	r = p.revision(r.Name, packagesv1.LifecyclePublished)
	p.published(v, "v1")

	request(packagesv1.LifecycleDeletionProposed, "")
	r = p.revision(r.Name, packagesv1.LifecycleDeletionProposed)
	request(packagesv1.LifecyclePublished, r.Status.Commit)
	r = p.revision(r.Name, packagesv1.LifecyclePublished)
	published := refs(cluster)
	uid := r.UID
	p.delete(r)
	until(p, r, "what is published is shown again", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.UID != uid && r.Status.Lifecycle == packagesv1.LifecyclePublished, said(r)
	})
	if now := refs(cluster); now != published {
		t.Errorf("the refs are\n%s\nbefore:\n%s", now, published)
	}
}

// TestTheNewestRevisionsAndAllChangesAreShown, those of people as well, who publish theirs in the same way.
func TestTheNewestRevisionsAndAllChangesAreShown(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cluster := p.repository("cluster")
	for i := 1; i <= 5; i++ {
		cluster.Tag(fmt.Sprintf("app/v%d", i), cluster.Commit("main", "app", plain(fmt.Sprintf("%d.0.0", i))), false)
	}
	draft := func(image string) {
		files := cluster.Tree("main")
		files["app/deployment.yaml"] = upstream.File{Content: strings.ReplaceAll(deployment, "1.0.0", image)}
		cluster.SetRef("refs/heads/drafts/app/mine", strings.TrimSpace(cluster.Raw("rev-parse", "main")))
		cluster.Commit("drafts/app/mine", "mine", files)
	}
	draft("6.0.0")
	shows := func(want map[string]packagesv1.Lifecycle) {
		t.Helper()
		testenv.Eventually(t, "the revisions are shown", func(context.Context) (bool, string) {
			got := p.lifecycles()
			return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprint(got)
		})
	}
	const draftOf, published = packagesv1.LifecycleDraft, packagesv1.LifecyclePublished
	shows(map[string]packagesv1.Lifecycle{"v3": published, "v4": published, "v5": published, "mine": draftOf})
	name := ""
	for _, r := range p.revisions("app") {
		if r.Spec.Workspace == "mine" {
			name = r.Name
		}
	}
	r := p.revision(name, packagesv1.LifecycleDraft)
	if r.Status.PackageVariant != "" || r.Status.Artifact == nil {
		t.Errorf("the draft shows %+v", r.Status)
	}
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	r = p.revision(name, packagesv1.LifecycleProposed)
	p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit })
	shows(map[string]packagesv1.Lifecycle{"v4": published, "v5": published, "mine": published})
	if got := cluster.Tree("main")["app/deployment.yaml"].Content; !strings.Contains(got, "6.0.0") || !strings.Contains(refs(cluster), "refs/tags/app/v6") {
		t.Errorf("the draft is not on the branch:\n%s", got)
	}
	draft("7.0.0") // The name of one that was published is used again.
	shows(map[string]packagesv1.Lifecycle{"v4": published, "v5": published, "mine": draftOf})
	r = p.revision(name, packagesv1.LifecycleDraft)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	p.remove(p.revision(name, packagesv1.LifecycleProposed))
	testenv.Eventually(t, "the proposal is discarded", func(context.Context) (bool, string) {
		got := refs(cluster)
		return !strings.Contains(got, "/mine") && strings.Count(got, "refs/heads/") == 1, got
	})
}
