package packages_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// long is a word of so many letters.
func long(letters int) string { return strings.Repeat("a", letters) }

// revisions are the objects of a package's revisions.
func (p *plane) revisions(of string) (found []packagesv1.PackageRevision) {
	p.Helper()
	var list packagesv1.PackageRevisionList
	if err := env.Client.List(p.Context(), &list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(r packagesv1.PackageRevision) bool { return r.Spec.Package != of })
}

// TestAPackageThatSaysTooMuchIsReported: what a Kptfile says of its package is cut to what a status takes.
func TestAPackageThatSaysTooMuchIsReported(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cluster := p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	for name, more := range map[string]string{
		"status":  "status:\n  conditions:\n  - {type: Checked, status: Maybe}\n",
		"message": fmt.Sprintf("status:\n  conditions:\n  - {type: %s, status: \"True\", reason: %s, message: %s}\n", long(400), long(300), long(3000)),
		"gates":   fmt.Sprintf("info:\n  readinessGates:\n  - {conditionType: %s}\n", long(400)),
		"lock":    fmt.Sprintf("upstreamLock:\n  git: {repo: %s, directory: %s, ref: %s, commit: %s}\n", long(3000), long(2000), long(2000), long(100)),
	} {
		cluster.Commit("drafts/"+name+"/one", "a draft", upstream.Text(map[string]string{name + "/Kptfile": kptfile + more}))
	}
	cluster.Commit("drafts/variant/one", "a draft", upstream.Text(map[string]string{
		"variant/Kptfile": kptfile + "  annotations:\n    packages.sluice.dev/variant: " + long(400) + "\n",
	}))
	for _, name := range []string{"status", "message", "gates", "lock", "variant"} {
		testenv.Eventually(t, "the draft of "+name, func(context.Context) (bool, string) {
			found := p.revisions(name)
			if len(found) != 1 {
				return false, fmt.Sprintf("%d objects", len(found))
			}
			r := &found[0]
			return r.Status.Lifecycle == packagesv1.LifecycleDraft && conditions.Get(r, "Ready") != nil, said(r)
		})
	}
}

// TestACommitThatNamesAnImpossibleWorkspaceHarmsNothing: its revision has an object, as all others have.
func TestACommitThatNamesAnImpossibleWorkspaceHarmsNothing(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cluster := p.repository("cluster")
	files := upstream.Files{}
	for name, workspace := range map[string]string{"slash": "a/b", "space": "a b", "long": long(300), "dots": "..", "plain": "mine"} {
		maps.Copy(files, upstream.Text(map[string]string{name + "/Kptfile": kptfile}))
		commit := cluster.Commit("main", "Publish\n\nSluice-Package: "+name+"\nSluice-Revision: v1\nSluice-Workspace: "+workspace, files)
		cluster.Tag(name+"/v1", commit, false)
	}
	for _, name := range []string{"slash", "space", "long", "dots", "plain"} {
		testenv.Eventually(t, "the revision of "+name, func(context.Context) (bool, string) {
			found := p.revisions(name)
			return len(found) == 1 && found[0].Status.Lifecycle == packagesv1.LifecyclePublished, fmt.Sprintf("%d objects", len(found))
		})
	}
	repository := &packagesv1.Repository{ObjectMeta: p.meta("cluster")}
	until(p, repository, "it is synced", func(r *packagesv1.Repository) (bool, string) { return conditions.IsReady(r), said(r) })
}

// TestAVariantWithTooMuchToTellIsReported: of what is changed, injected and in conflict, a status tells what it has room for.
func TestAVariantWithTooMuchToTellIsReported(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	var points strings.Builder
	for i := range 70 {
		fmt.Fprintf(&points, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: point-%d\n  annotations: {kpt.dev/config-injection: required}\n", i)
	}
	plain := func(value string) upstream.Files {
		return upstream.Text(map[string]string{
			"app/Kptfile": kptfile, "app/points.yaml": points.String(),
			"app/odd.yaml": fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n  text: %s\n", long(300), long(100), long(300), long(100), value),
		})
	}
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("one")), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	v := p.variant(func(s *packagesv1.PackageVariantSpec) { s.ServiceAccountName = "reader" })
	p.drafted(v, cluster, func(upstream.Files) bool { return true })
	branch := "drafts/app/" + v.Status.Change.Workspace
	edited := cluster.Tree(branch)
	edited["app/odd.yaml"] = upstream.File{Content: strings.ReplaceAll(edited["app/odd.yaml"].Content, "text: one", "text: "+strings.Repeat("o", 600))}
	ours := cluster.Commit(branch, "ours", edited)
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain(strings.Repeat("t", 600))), false)
	p.drafted(v, cluster, func(upstream.Files) bool { return v.Status.Change.Commit != ours && v.Status.Change.ConflictCount == 1 })
}
