package packages_test

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestADraftWithFilesOutsideItsPackageIsNotPublished: they would be left out. The approver and the draft's author see which ones.
func TestADraftWithFilesOutsideItsPackageIsNotPublished(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	branch := "drafts/app/" + v.Status.Change.Workspace
	more := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n"
	work := cluster.Commit(branch, "app and what it needs", upstream.Text(map[string]string{"app/more.yaml": more, "shared/values.yaml": "needed: by app\n"}))
	until(p, v, "it is seen", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil && v.Status.Change.Commit == work, said(v)
	})
	r := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	before := cluster.Raw("rev-parse", "main")
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	fails(p, r, packagesv1.FilesOutsidePackageReason, "shared/values.yaml (1 in all)")
	if now := cluster.Raw("rev-parse", "main", branch); now != before+"\n"+work {
		t.Errorf("main and the draft are at\n%s", now)
	}
	files := cluster.Tree(branch)
	delete(files, "shared/values.yaml")
	cluster.Rewrite("scratch", "files", files)
	cluster.SetRef("refs/heads/"+branch, cluster.CommitTree(cluster.Raw("rev-parse", "scratch^{tree}"), "without", work))
	p.revision(r.Name, packagesv1.LifecycleProposed)
}
