package packages_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

const backdoor = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: backdoor\n"

// tip waits until the variant shows the commit as its open change.
func (p *plane) tip(v *packagesv1.PackageVariant, commit string) *packagesv1.ChangeStatus {
	p.Helper()
	until(p, v, "the commit is shown", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil && v.Status.Change.Commit == commit && conditions.IsReady(v), said(v)
	})
	return v.Status.Change
}

// TestTheChangeIsThatOfItsCommit: the status lists what a person's commit adds to the draft, also in a new process, and what a later commit
// takes away. Where an object cannot be read, the status says so.
func TestTheChangeIsThatOfItsCommit(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	v, cluster := p.changed()
	made := v.Status.Change
	branch := "drafts/app/" + made.Workspace

	added := p.tip(v, cluster.Commit(branch, "typo", upstream.Text(map[string]string{"app/backdoor.yaml": backdoor})))
	has := slices.ContainsFunc(added.Objects.Names, func(o packagesv1.ObjectChange) bool {
		return o.Kind == "ClusterRoleBinding" && o.Change == packagesv1.DifferenceAdded
	})
	if !has || !strings.Contains(fileNames(added), "Added backdoor.yaml") || added.Files.Changed != made.Files.Changed {
		t.Errorf("the files are %+v, and the objects %+v; before, they were %+v and %+v", added.Files, added.Objects, made.Files, made.Objects)
	}
	if added.RenderResults != nil {
		t.Errorf("functions have run on a commit of a person: %+v", added.RenderResults)
	}

	p.stop()
	patched := v.DeepCopy()
	patched.Status.Change.Files, patched.Status.Change.Objects = made.Files, made.Objects
	if err := env.Client.Status().Update(t.Context(), patched); err != nil {
		t.Fatal(err)
	}
	p.start()
	until(p, v, "the status is that of the commit again", func(v *packagesv1.PackageVariant) (bool, string) {
		return strings.Contains(fileNames(v.Status.Change), "backdoor"), said(v)
	})

	broken := p.tip(v, cluster.Commit(branch, "typo", upstream.Text(map[string]string{"app/backdoor.yaml": "a: b: c\n"})))
	if broken.Objects != nil || !strings.Contains(broken.Message, "backdoor.yaml") || !strings.Contains(fileNames(broken), "backdoor") {
		t.Errorf("the objects of a package that cannot be read are %+v, with the message %q", broken.Objects, broken.Message)
	}
	gone := p.tip(v, cluster.Commit(branch, "without it", upstream.Files{"app/backdoor.yaml": {Mode: upstream.Removed}}))
	if gone.Message != "" || strings.Contains(fileNames(gone), "backdoor") {
		t.Errorf("the status still lists the file: %s, %q", fileNames(gone), gone.Message)
	}
}

// TestAResolvedConflictGoes: a conflict stays as long as its file is what it was, also in a new process.
func TestAResolvedConflictGoes(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	v := p.variant(initial)
	p.published(v, "v1")
	text := cluster.Tree("main")["app/deployment.yaml"].Content
	cluster.Commit("main", "an edit", upstream.Text(map[string]string{"app/deployment.yaml": strings.Replace(text, "1.0.0", "1.0.0-mine", 1)}))
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	until(p, v, "conflicted", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsTrue(v, packagesv1.ConflictedCondition) && v.Status.Change != nil && conditions.IsReady(v), said(v)
	})
	branch := "drafts/app/" + v.Status.Change.Workspace
	draft := cluster.Tree(branch)["app/deployment.yaml"].Content
	conflicts := func(want int32) {
		t.Helper()
		if c := v.Status.Change; c.ConflictCount != want || len(c.Conflicts) != int(want) || conditions.IsTrue(v, packagesv1.ConflictedCondition) != (want > 0) {
			t.Errorf("%d conflicts are listed, not %d: %+v", c.ConflictCount, want, c.Conflicts)
		}
	}
	mend := func(image string) string {
		return cluster.Commit(branch, "mend", upstream.Text(map[string]string{"app/deployment.yaml": strings.Replace(draft, "1.0.0-mine", image, 1)}))
	}
	p.tip(v, cluster.Commit(branch, "elsewhere", upstream.Text(map[string]string{"app/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n"})))
	conflicts(1)
	p.tip(v, mend("2.0.0-mine"))
	conflicts(0)
	p.tip(v, mend("1.0.0-mine"))
	conflicts(1)
	p.stop()
	p.start()
	p.tip(v, mend("2.0.0-mine"))
	conflicts(0)
}

// TestTheRequestShowsAPersonsCommit: whoever merges the request approves that commit, so its words are about it.
func TestTheRequestShowsAPersonsCommit(t *testing.T) {
	t.Parallel()
	s := newForged(t, "github").tale(t, "app")
	s.sync()
	s.opened("deployment")
	until(s.plane, s.v, "the draft", func(v *packagesv1.PackageVariant) (bool, string) { return v.Status.Change != nil, said(v) })
	commit := s.person(s.draft(), map[string]string{"backdoor.yaml": backdoor})
	request := s.opened(commit)
	s.has(request.Body, "ClusterRoleBinding", "backdoor.yaml")
}
