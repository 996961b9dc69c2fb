package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestAnApprovalByTheSpecPublishesNothingOfADraft to which others may push: neither what they add, nor the gate that they open.
func TestAnApprovalByTheSpecPublishesNothingOfADraft(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(readme))
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{
		"app/Kptfile": kptfile, "app/deployment.yaml": deployment,
		"app/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  annotations:\n    kpt.dev/config-injection: required\ndata:\n  region: none\n",
	})), false)
	v := p.variant(always, func(s *packagesv1.PackageVariantSpec) { s.ServiceAccountName = "reader" })
	until(p, v, "it waits for its gate", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Change != nil && strings.Contains(said(v), "readiness gates"), said(v)
	})
	branch := "drafts/app/" + v.Status.Change.Workspace
	draft := cluster.Tree(branch)["app/Kptfile"].Content
	opened := strings.NewReplacer("status: \"False\"", "status: \"True\"", "status: 'False'", "status: 'True'").Replace(draft)
	if opened == draft {
		t.Fatalf("no gate is closed in\n%s", draft)
	}
	evil := cluster.Commit(branch, "typo", upstream.Text(map[string]string{"app/Kptfile": opened, "app/backdoor.yaml": backdoor}))
	until(p, v, "the commit is seen", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.IsReady(v) && v.Status.Change != nil && v.Status.Change.Commit == evil && strings.Contains(said(v), "commits that Sluice did not make"), said(v)
	})
	r := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	r = p.revision(r.Name, packagesv1.LifecycleProposed)
	p.ask(r, func() { r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit })
	fails(p, r, packagesv1.GatesNotMetReason, "settings")
	if got := paths(cluster.Tree("main")); len(got) != 1 {
		t.Errorf("the branch has %v", got)
	}
}

// TestADraftOfSomebodyElseIsNotApprovedByTheSpec, also where its commit looks like the program's own: what it has is computed again.
func TestADraftOfSomebodyElseIsNotApprovedByTheSpec(t *testing.T) {
	t.Parallel()
	for _, forges := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "forged"}[forges], func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			_, cluster := p.stocked(readme)
			v := p.variant(always, func(s *packagesv1.PackageVariantSpec) { s.AdoptionPolicy = packagesv1.AdoptExisting; s.Suspend = true })
			files := plain("1.0.0")
			files["app/backdoor.yaml"] = upstream.File{Content: backdoor}
			const branch = "drafts/app/packagevariant-9"
			cluster.SetRef("refs/heads/"+branch, strings.TrimSpace(cluster.Raw("rev-parse", "main")))
			pushed := cluster.Commit(branch, "a draft", files)
			if forges {
				tree := strings.TrimSpace(cluster.Raw("rev-parse", pushed+"^{tree}"))
				pushed = strings.TrimSpace(cluster.Raw("commit-tree", tree, "-p", "main", "-m", "a draft\n\nSluice-Package: app\nSluice-Tree: "+tree))
				cluster.SetRef("refs/heads/"+branch, pushed)
			}
			repository := p.packages("cluster")
			p.again(repository, func() string { return repository.Status.LastHandledReconcileAt })
			p.ask(v, func() { v.Spec.Suspend = false })
			if forges {
				p.published(v, "v1")
			} else {
				until(p, v, "a person is asked", func(v *packagesv1.PackageVariant) (bool, string) {
					return conditions.IsReady(v) && strings.Contains(said(v), "commits that Sluice did not make"), said(v)
				})
			}
			for path := range cluster.Tree("main") {
				if strings.Contains(path, "backdoor") {
					t.Errorf("%s was published", path)
				}
			}
		})
	}
}

// TestAnApprovalByTheSpecSurvivesARestart: what this process has not computed is computed again, and published.
func TestAnApprovalByTheSpecSurvivesARestart(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(readme)
	v := p.variant()
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	draft := v.Status.Change.Commit
	r := p.revision(v.Status.Change.PackageRevision, packagesv1.LifecycleDraft)
	p.ask(r, func() { r.Spec.Lifecycle = packagesv1.LifecycleProposed })
	p.revision(r.Name, packagesv1.LifecycleProposed)
	p.stop()
	p.ask(v, func() { always(&v.Spec) })
	p.start()
	p.published(v, "v1")
	if got := cluster.Raw("log", "-1", "--format=%(trailers:key=Sluice-Change,valueonly)", "main"); strings.TrimSpace(got) != draft {
		t.Errorf("%q was published, and the draft was %s", got, draft)
	}
}
