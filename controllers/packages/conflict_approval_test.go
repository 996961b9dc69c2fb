package packages_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

const mineYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n"

// conflicted makes a variant whose open change has a conflict about its image, between people's 1.0.0-hotfix and upstream's 2.0.0.
func (p *plane) conflicted(change ...func(*packagesv1.PackageVariantSpec)) (v *packagesv1.PackageVariant, blueprints, cluster *upstream.Edited) {
	p.Helper()
	blueprints, cluster = p.stocked(readme)
	v = p.variant(append([]func(*packagesv1.PackageVariantSpec){initial}, change...)...)
	p.published(v, "v1")
	text := cluster.Tree("main")["app/deployment.yaml"].Content
	cluster.Commit("main", "a hotfix in production", upstream.Text(map[string]string{"app/deployment.yaml": strings.Replace(text, "1.0.0", "1.0.0-hotfix", 1)}))
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	until(p, v, "the conflict is listed", func(v *packagesv1.PackageVariant) (bool, string) {
		c := v.Status.Change
		return c != nil && c.ConflictCount == 1 && conditions.IsReady(v) && conditions.IsTrue(v, packagesv1.ConflictedCondition) &&
			len(c.Conflicts) == 1 && strings.HasSuffix(c.Conflicts[0].Upstream, "2.0.0"), said(v)
	})
	return v, blueprints, cluster
}

// proposed is the revision of the open change, once it is proposed and says which conflicts it has.
func (p *plane) proposed(v *packagesv1.PackageVariant) *packagesv1.PackageRevision {
	p.Helper()
	r := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	until(p, r, "it is proposed", func(r *packagesv1.PackageRevision) (bool, string) {
		return r.Status.Lifecycle == packagesv1.LifecycleProposed && conditions.IsReady(r) &&
			r.Status.ConflictCount == v.Status.Change.ConflictCount && r.Status.ConflictDigest == v.Status.Change.ConflictDigest, said(r)
	})
	return r
}

// TestConflictsArePublishedByTheirDigest alone, whatever the policy of approval or of conflicts is, and everything says that there are some.
func TestConflictsArePublishedByTheirDigest(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*packagesv1.PackageVariantSpec){
		"default":  func(*packagesv1.PackageVariantSpec) {},
		"upstream": func(s *packagesv1.PackageVariantSpec) { s.ConflictPolicy = packagesv1.ConflictUpstream },
		"always":   always,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			v, _, cluster := p.conflicted(change)
			c := v.Status.Change
			image := "1.0.0-hotfix"
			if v.Spec.ConflictPolicy == packagesv1.ConflictUpstream {
				image = "2.0.0"
			}
			p.has(cluster.Tree(c.Commit)["app/deployment.yaml"].Content, "app:"+image+"\n")
			if !strings.HasPrefix(c.ConflictDigest, "sha256:") {
				t.Errorf("the digest is %q", c.ConflictDigest)
			}
			p.has(conditions.GetMessage(v, packagesv1.ConflictedCondition), c.ConflictDigest, c.PackageRevision)
			p.has(cluster.Raw("log", "-1", "--format=%B", c.Commit), "Sluice-Conflicts: "+c.ConflictDigest+" 1\n", "containers[name=app].image",
				"before:   example.com/app:1.0.0\n", "upstream: example.com/app:2.0.0\n", "here:     example.com/app:1.0.0-hotfix\n")
			p.events.mu.Lock()
			if !slices.Contains(p.events.events, "app Warning Conflicted") {
				t.Errorf("no event tells of the conflict: %v", p.events.events)
			}
			p.events.mu.Unlock()

			r := p.proposed(v)
			main := cluster.Raw("rev-parse", "main")
			p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit })
			fails(p, r, packagesv1.ConflictsNotApprovedReason, c.ConflictDigest)
			p.ask(r, func() { r.Spec.ApprovedConflicts = "sha256:" + strings.Repeat("0", 64) })
			fails(p, r, packagesv1.ConflictsNotApprovedReason, c.ConflictDigest)
			if now := cluster.Raw("rev-parse", "main"); now != main {
				t.Fatal("it was published all the same")
			}
			p.ask(r, func() { r.Spec.ApprovedConflicts = c.ConflictDigest })
			p.published(v, "v2")
			p.has(cluster.Tree("main")["app/deployment.yaml"].Content, "app:"+image+"\n")
		})
	}
}

// TestConflictsAreNotForgotten: neither by a new process whose objects have lost their status, nor under a person's commit, nor by the next
// update, which does not meet them again.
func TestConflictsAreNotForgotten(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, blueprints, cluster := p.conflicted()
	digest := v.Status.Change.ConflictDigest
	scaled := strings.NewReplacer("replicas: 1", "replicas: 3", "1.0.0", "2.0.0").Replace(deployment)
	blueprints.Tag("app/v3", blueprints.Commit("main", "scale", upstream.Text(map[string]string{"app/deployment.yaml": scaled})), false)
	until(p, v, "the next update is in the draft", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil && conditions.IsReady(v) && strings.Contains(cluster.Tree(v.Status.Change.Commit)["app/deployment.yaml"].Content, "replicas: 3"), said(v)
	})
	if c := v.Status.Change; c.ConflictCount != 1 || c.ConflictDigest != digest {
		t.Fatalf("the next update forgot the conflict: %d %s", c.ConflictCount, c.ConflictDigest)
	}
	mine := cluster.Commit("drafts/app/"+v.Status.Change.Workspace, "more", upstream.Text(map[string]string{"app/mine.yaml": mineYAML}))
	p.tip(v, mine)
	p.stop()
	before := v.DeepCopy()
	v.Status.Change, v.Status.Conditions = nil, nil
	if err := env.Client.Status().Patch(t.Context(), v, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.tip(v, mine)
	if c := v.Status.Change; c.ConflictCount != 1 || c.ConflictDigest != digest || !conditions.IsTrue(v, packagesv1.ConflictedCondition) {
		t.Fatalf("the new process forgot the conflict: %+v", c)
	}
	r := p.proposed(v)
	p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit })
	fails(p, r, packagesv1.ConflictsNotApprovedReason, digest)
	p.ask(r, func() { r.Spec.ApprovedConflicts = digest })
	p.published(v, "v2")
}

// TestAnUpdateThatTheStatusDoesNotKnowKeepsConflicts: the process died between the push and the status. The update changed the file of the
// conflict, and no person did.
func TestAnUpdateThatTheStatusDoesNotKnowKeepsConflicts(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, blueprints, cluster := p.conflicted()
	known := v.Status.Change.DeepCopy()
	scaled := strings.NewReplacer("replicas: 1", "replicas: 3", "1.0.0", "2.0.0").Replace(deployment)
	blueprints.Tag("app/v3", blueprints.Commit("main", "scale", upstream.Text(map[string]string{"app/deployment.yaml": scaled})), false)
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "replicas: 3") })
	tip := v.Status.Change.Commit
	p.stop()
	before := v.DeepCopy()
	v.Status.Change = known
	if err := env.Client.Status().Patch(t.Context(), v, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	p.start()
	if c := p.tip(v, tip); c.ConflictCount != 1 || c.ConflictDigest != known.ConflictDigest || len(c.Conflicts) != 1 {
		t.Errorf("the conflicts are %d, %s: %+v", c.ConflictCount, c.ConflictDigest, c.Conflicts)
	}
}

// TestASquashedDraftKeepsConflictsForAnApproval that comes before the variant has looked at it: Git has no record of them any more.
func TestASquashedDraftKeepsConflictsForAnApproval(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, _, cluster := p.conflicted()
	digest, name, branch := v.Status.Change.ConflictDigest, v.Status.Change.PackageRevision, "drafts/app/"+v.Status.Change.Workspace
	p.ask(v, func() { v.Spec.Suspend = true })
	until(p, v, "it is suspended", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.ObservedGeneration == v.Generation, said(v)
	})
	squashed := cluster.CommitTree(cluster.Raw("rev-parse", branch+"^{tree}"), "squashed", cluster.Raw("rev-parse", "main"))
	cluster.SetRef("refs/heads/"+branch, squashed)
	p.look("cluster")
	r := &packagesv1.PackageRevision{ObjectMeta: p.meta(name)}
	until(p, r, "it is seen", func(r *packagesv1.PackageRevision) (bool, string) { return r.Status.Commit == squashed, said(r) })
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	r = p.revision(name, packagesv1.LifecycleProposed)
	p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, squashed })
	fails(p, r, packagesv1.ConflictsNotApprovedReason, digest)
	p.ask(r, func() { r.Spec.ApprovedConflicts = digest })
	p.revision(name, packagesv1.LifecyclePublished)
}

// TestGitRecordsConflictsForAnApproval where the variant is gone.
func TestGitRecordsConflictsForAnApproval(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, _, cluster := p.conflicted()
	digest, name := v.Status.Change.ConflictDigest, v.Status.Change.PackageRevision
	p.tip(v, cluster.Commit("drafts/app/"+v.Status.Change.Workspace, "more", upstream.Text(map[string]string{"app/mine.yaml": mineYAML})))
	p.delete(v)
	p.gone(v) // The draft stays, as a person has committed to it.
	r := p.revision(name, packagesv1.LifecycleDraft)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	r = p.revision(name, packagesv1.LifecycleProposed)
	p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit })
	fails(p, r, packagesv1.ConflictsNotApprovedReason, digest)
	p.ask(r, func() { r.Spec.ApprovedConflicts = digest })
	p.revision(name, packagesv1.LifecyclePublished)
}
