package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// revised gives a repository a package with so many published revisions.
func revised(p *plane, in *upstream.Edited, pkg string, revisions int) {
	p.Helper()
	for n := 1; n <= revisions; n++ {
		message := fmt.Sprintf("Publish %s v%d\n\nSluice-Package: %s\nSluice-Revision: v%d\n", pkg, n, pkg, n)
		commit := in.Commit("main", message, upstream.Text(map[string]string{pkg + "/Kptfile": kptfile, pkg + "/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", fmt.Sprint(n))}))
		in.Raw("tag", fmt.Sprintf("%s/v%d", pkg, n), commit)
	}
}

// tagged waits until the repository has these tags.
func (p *plane) tagged(in *upstream.Edited, what string, want ...string) {
	p.Helper()
	testenv.Eventually(p.T, what, func(context.Context) (bool, string) {
		diff := cmp.Diff(want, strings.Fields(in.Raw("for-each-ref", "--sort=v:refname", "--format=%(refname:lstrip=2)", "refs/tags")))
		return diff == "", diff
	})
}

// TestAHistoryRemovesWhatNobodyNeeds: no tag goes before a history is set, and with one no tag that something in the cluster names there.
// A server that keeps one is told of in a condition, and stops nothing.
func TestAHistoryRemovesWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	old := p.repository("old")
	revised(p, old, "app", 8)
	cluster := p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	pin := p.source("pin", p.server)
	pin.Spec.URL, pin.Spec.Reference = "https://elsewhere.example/old.git", &sourcev1.GitRepositoryRef{Tag: "app/v1"}
	p.create(pin)
	v := p.variant(func(spec *packagesv1.PackageVariantSpec) {
		spec.Upstream, spec.Downstream.Package = packagesv1.Upstream{Repo: "old", Package: "app", Revision: 2}, "mine"
	})
	held := p.variantNamed("held", func(spec *packagesv1.PackageVariantSpec) {
		spec.Upstream, spec.Downstream.Package = packagesv1.Upstream{Repo: "old", Package: "app", Branch: "then"}, "held"
	})
	old.Raw("branch", "then", "app/v3")
	third := p.repository("third")
	third.Commit("main", "begin", upstream.Text(readme)) // Else its commits would be those of old.
	revised(p, third, "app", 5)
	other := p.variantNamed("other", func(spec *packagesv1.PackageVariantSpec) { // Another repository has another tag of the name.
		spec.Upstream, spec.Downstream.Package = packagesv1.Upstream{Repo: "third", Package: "app", Revision: 5}, "other"
	})
	p.look("old")
	for _, v := range []*packagesv1.PackageVariant{v, held, other} {
		p.drafted(v, cluster, func(upstream.Files) bool { return true })
	}
	p.tagged(old, "nothing has gone", "app/v1", "app/v2", "app/v3", "app/v4", "app/v5", "app/v6", "app/v7", "app/v8")
	old.Hook("update", `case "$1 $3" in refs/tags/app/v4\ 0000*) echo "v4 is protected" >&2; exit 1;; esac`)
	r := &packagesv1.Repository{ObjectMeta: p.meta("old")}
	p.ask(r, func() { r.Spec.History = &packagesv1.HistorySpec{Revisions: new(int32(3))} })
	p.tagged(old, "what nobody needs has gone", "app/v1", "app/v2", "app/v3", "app/v4", "app/v6", "app/v7", "app/v8")
	until(p, r, "the refusal is told", func(r *packagesv1.Repository) (bool, string) {
		blocked := conditions.Get(r, packagesv1.HistoryBlockedCondition)
		return blocked != nil && blocked.Reason == packagesv1.PushRejectedReason && strings.Contains(blocked.Message, "app/v4") && conditions.IsReady(r), fmt.Sprint(blocked)
	})
	testenv.Eventually(t, "somebody is told", func(context.Context) (bool, string) {
		p.events.mu.Lock()
		defer p.events.mu.Unlock()
		return slices.Contains(p.events.events, "old Normal HistoryPruned"), fmt.Sprint(p.events.events)
	})
	p.delete(pin)
	p.gone(pin)
	testenv.Eventually(t, "its tag goes as well", func(context.Context) (bool, string) {
		p.look("old")
		tags := old.Raw("tag", "-l", "app/v1")
		return tags == "", tags
	})
	p.ask(r, func() { r.Spec.History = nil })
	until(p, r, "nothing is blocked where nothing is to go", func(r *packagesv1.Repository) (bool, string) {
		return !conditions.Has(r, packagesv1.HistoryBlockedCondition), fmt.Sprint(r.Status.Conditions)
	})
	p.tagged(old, "the others stay", "app/v2", "app/v3", "app/v4", "app/v6", "app/v7", "app/v8")
}

// TestNoTagGoesBeforeAllRepositoriesAreRead: after a restart, or where all objects are made at once, a package may be of a tag that nothing
// else names. A Repository that cannot be read holds up nobody.
func TestNoTagGoesBeforeAllRepositoriesAreRead(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	old := p.repository("old")
	revised(p, old, "app", 5)
	nowhere, server := p.packages("nowhere"), p.upstreams.HTTP(upstream.HTTPOptions{})
	p.create(nowhere)
	fails(p, nowhere, packagesv1.GitRepositoryNotFoundReason, "nowhere")
	late := p.upstreams.Repository("late.git")
	git := fmt.Sprintf("  type: git\n  git:\n    repo: %s\n    directory: /app\n    ref: app/v1\n", p.server.URL("old.git"))
	late.Commit("main", "clone", upstream.Text(map[string]string{"mine/Kptfile": kptfile + "upstream:\n" + git + "  updateStrategy: resource-merge\nupstreamLock:\n" + git + "    commit: " + old.Raw("rev-parse", "app/v1") + "\n"}))
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	server.Before(upstream.LsRefs, func() {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-answer
	})
	p.create(p.source("late", server), p.packages("late"))
	<-asked
	r := &packagesv1.Repository{ObjectMeta: p.meta("old")}
	p.ask(r, func() { r.Spec.History = &packagesv1.HistorySpec{Revisions: new(int32(3))} })
	p.again(r, func() string { return r.Status.LastHandledReconcileAt })
	p.tagged(old, "nothing has gone", "app/v1", "app/v2", "app/v3", "app/v4", "app/v5")
	close(answer)
	p.tagged(old, "what nobody needs has gone", "app/v1", "app/v3", "app/v4", "app/v5")
}
