package packages_test

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// TestTheSpecFollowsGit to whatever others make of a change, and is never taken for a wish then.
func TestTheSpecFollowsGit(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
	draft := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	branch := "app/" + draft.Spec.Workspace
	cluster.RenameBranch("drafts/"+branch, "proposed/"+branch)
	p.revision(draft.Name, packagesv1.LifecycleProposed)
	cluster.RenameBranch("proposed/"+branch, "drafts/"+branch)
	p.revision(draft.Name, packagesv1.LifecycleDraft)
	cluster.SetRef("refs/heads/deletionProposed/app/v1", v.Status.Published.Commit)
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	cluster.DeleteRef("refs/heads/deletionProposed/app/v1")
	p.revision(v.Status.Published.PackageRevision, packagesv1.LifecyclePublished)
}
