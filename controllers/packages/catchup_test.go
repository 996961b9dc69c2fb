package packages_test

import (
	"fmt"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestEveryEditOfTheBranchComesIntoTheDraft, also the second one while it is open: the draft keeps what upstream has brought
// meanwhile, and what was taken out of it.
func TestEveryEditOfTheBranchComesIntoTheDraft(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	content := func(image string) upstream.Files {
		return upstream.Text(map[string]string{
			"app/Kptfile": kptfile, "app/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image),
			"app/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\n",
		})
	}
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", content("1.0.0")), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant()
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	p.publish(v)
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", content("2.0.0")), false)
	p.drafted(v, cluster, func(f upstream.Files) bool { return strings.Contains(f["app/deployment.yaml"].Content, "2.0.0") })
	cluster.Commit("drafts/app/"+v.Status.Change.Workspace, "without extra", upstream.Files{"app/extra.yaml": {Mode: upstream.Removed}})

	for i := range 3 {
		name := fmt.Sprintf("app/edit-%d.yaml", i)
		cluster.Commit("main", name, upstream.Text(map[string]string{name: fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: edit-%d\n", i)}))
		files := p.drafted(v, cluster, func(f upstream.Files) bool { return f[name].Content != "" })
		if got := files["app/deployment.yaml"].Content; !strings.Contains(got, "2.0.0") {
			t.Errorf("after edit %d upstream's image is gone:\n%s", i, got)
		}
		if got := files["app/extra.yaml"].Content; got != "" {
			t.Errorf("after edit %d what was taken out of the draft is back:\n%s", i, got)
		}
		if c := v.Status.Change; c.ConflictCount != 0 {
			t.Errorf("after edit %d there are conflicts: %+v", i, c.Conflicts)
		}
	}
	if v.Status.Change.Lifecycle != packagesv1.LifecycleDraft {
		t.Errorf("the change is %s", v.Status.Change.Lifecycle)
	}
}
