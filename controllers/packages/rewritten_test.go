package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// rewrite gives upstream another history, and removes the commits of before.
func rewrite(blueprints *upstream.Edited, files upstream.Files) {
	moved := blueprints.Moved
	blueprints.Moved = func() {}
	blueprints.DeleteRef("refs/tags/app/v1")
	blueprints.Rewrite("main", "squashed", files)
	blueprints.Raw("reflog", "expire", "--expire=now", "--all")
	blueprints.Raw("gc", "--prune=now", "-q")
	blueprints.Moved = moved
	moved()
}

// TestEditsOutliveARewrittenUpstream: the base of the merge is what was made last, which the package's own history has. What people changed
// stays, and what upstream adds arrives.
func TestEditsOutliveARewrittenUpstream(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	v := p.variant(always, func(s *packagesv1.PackageVariantSpec) { s.Upstream.Branch = "main" })
	p.published(v, "v1")
	text := cluster.Tree("main")["app/deployment.yaml"].Content
	cluster.Commit("main", "an edit", upstream.Text(map[string]string{"app/deployment.yaml": strings.Replace(text, "replicas: 1", "replicas: 7", 1)}))
	files := plain("2.0.0")
	files["app/new.yaml"] = upstream.File{Content: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n"}
	rewrite(blueprints, files)
	p.waitsForAPerson(v, cluster, "app:2.0.0", packagesv1.NotComparableReason, "v1")
	now := cluster.Tree(v.Status.Change.Commit)
	p.has(now["app/deployment.yaml"].Content, "replicas: 7", "app:2.0.0")
	if _, arrived := now["app/new.yaml"]; !arrived || conditions.Has(v, packagesv1.ConflictedCondition) {
		t.Errorf("the new file has arrived: %v; %v", arrived, v.Status.Conditions)
	}
}

// TestWithoutABaseEditsStay: where people's edits were merged before, no commit has the package without them. All their values stay, and
// each place that upstream has otherwise is a conflict.
func TestWithoutABaseEditsStay(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	v := p.variant(initial, func(s *packagesv1.PackageVariantSpec) { s.Upstream.Branch = "main" })
	p.published(v, "v1")
	text := cluster.Tree("main")["app/deployment.yaml"].Content
	cluster.Commit("main", "an edit", upstream.Text(map[string]string{"app/deployment.yaml": strings.Replace(text, "replicas: 1", "replicas: 7", 1)}))
	blueprints.Commit("main", "newer", plain("2.0.0"))
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	files := plain("3.0.0")
	files["app/new.yaml"] = upstream.File{Content: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n"}
	rewrite(blueprints, files)
	draft := p.drafted(v, cluster, func(f upstream.Files) bool { return f["app/new.yaml"].Content != "" })
	p.has(draft["app/deployment.yaml"].Content, "replicas: 7", "app:2.0.0")
	if v.Status.Change.ConflictCount != 2 {
		t.Errorf("the conflicts are %+v", v.Status.Change.Conflicts)
	}
}

// TestADraftsLockReadsNothingElse: a draft shows nothing of a Repository or folder that the package was not made from.
func TestADraftsLockReadsNothingElse(t *testing.T) {
	t.Parallel()
	for name, isFolder := range map[string]bool{"repository": false, "folder": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			secret := p.repository("secret")
			commit, from, to := secret.Commit("main", "app", plain("secret")), p.server.URL("blueprints.git"), p.server.URL("secret.git")
			blueprints, cluster := p.stocked(readme)
			first := strings.TrimSpace(blueprints.Raw("rev-parse", "app/v1^{commit}"))
			if isFolder {
				hidden := upstream.Files{}
				for path, file := range plain("secret") {
					hidden["hidden/"+strings.TrimPrefix(path, "app/")] = file
				}
				commit, from, to = blueprints.Commit("main", "hidden", hidden), "directory: /app", "directory: /hidden"
			}
			v := p.variant()
			p.drafted(v, cluster, func(f upstream.Files) bool { return len(f) > 0 })
			branch := "drafts/app/" + v.Status.Change.Workspace
			draft := cluster.Tree(branch)
			kptfile := strings.ReplaceAll(strings.ReplaceAll(draft["app/Kptfile"].Content, from, to), first, commit)
			if !strings.Contains(kptfile, to) || !strings.Contains(kptfile, commit) {
				t.Fatalf("the lock is not replaced:\n%s", kptfile)
			}
			mine := cluster.Commit(branch, "another lock", upstream.Text(map[string]string{
				"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(draft["app/deployment.yaml"].Content, "1.0.0", "1.0.0-mine"),
			}))
			blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
			until(p, v, "the draft is written again", func(v *packagesv1.PackageVariant) (bool, string) {
				return v.Status.Change != nil && v.Status.Change.Commit != mine && v.Status.Change.ConflictCount > 0 && conditions.IsReady(v), said(v)
			})
			for _, c := range v.Status.Change.Conflicts {
				p.hasNot(c.Base, "secret")
			}
		})
	}
}
