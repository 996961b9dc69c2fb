package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestGitAloneRemembersPackages: with one package as a draft that a person edited, one proposed, one published and one whose
// deletion is proposed, the status of every object is lost, and then the whole cluster with every object and all that the
// program kept. Both times it finds out from Git that there is nothing to do, says the same as before, and writes nothing there.
func TestGitAloneRemembersPackages(t *testing.T) {
	t.Parallel()
	l := newPackageLaps(t)
	l.begin()
	leaving := l.variant("db", "south")
	l.variants = append(l.variants, leaving)
	for _, step := range l.steps(1)[:2] {
		step.begin()
		l.eventually(step.name, step.done)
	}
	draft, proposed, published := l.variants[0], l.variants[1], l.variants[2]
	l.propose(proposed)
	l.publish(published)
	l.publish(leaving)
	l.delete(leaving)
	l.untilRevision(leaving.Status.Published.PackageRevision, packagesv1.LifecycleDeletionProposed)
	kept := []*packagesv1.PackageVariant{draft, proposed, published}

	for _, loss := range []struct {
		what string
		lose func()
	}{
		{"the status of every object is lost", l.loseStatus},
		{"the cluster is lost", func() {
			l.loseCluster()
			for _, name := range []string{blueprints, "north", "south"} {
				l.objects(name)
			}
			for _, v := range kept {
				*v = *l.variant(v.Spec.Upstream.Package, v.Spec.Downstream.Repo)
				l.make(v)
			}
		}},
	} {
		before, refs := l.sayings(t.Context()), l.refs()
		l.stop()
		loss.lose()
		l.storage = t.TempDir()
		l.server.Reset()
		l.start()
		l.eventually("all is known again, as "+loss.what, func(ctx context.Context) (bool, string) {
			now := l.sayings(ctx)
			return slices.Equal(now, before), fmt.Sprintf("%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
		})
		l.eventually("all repositories are looked at", l.rested())
		if now := l.refs(); now != refs || l.server.Count(upstream.Push) > 0 {
			t.Errorf("%s, and Git was written to:\n%s\nbefore:\n%s", loss.what, now, refs)
		}
	}
}

// loseStatus empties the status of every object.
func (s *packageScene) loseStatus() {
	s.t.Helper()
	s.each(func(obj client.Object) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))
		if err := env.Client.Status().Patch(s.t.Context(), obj, patch); err != nil {
			s.t.Fatal(err)
		}
	})
}

// refs are all refs of all repositories.
func (l *packageLaps) refs() string {
	l.t.Helper()
	var all strings.Builder
	for _, name := range []string{blueprints, "north", "south"} {
		fmt.Fprintf(&all, "%s\n%s\n", name, l.repos[name].Raw("for-each-ref"))
	}
	return all.String()
}

// sayings are what the objects say of Git, each in a line.
func (l *packageLaps) sayings(ctx context.Context) []string {
	l.t.Helper()
	var variants packagesv1.PackageVariantList
	var revisions packagesv1.PackageRevisionList
	for _, list := range []client.ObjectList{&variants, &revisions} {
		if err := env.Client.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
			return []string{err.Error()}
		}
	}
	var all []string
	for i := range variants.Items {
		v := &variants.Items[i]
		line := fmt.Sprint(v.Name, " ", isDone(v), " ", v.Status.Config, " ", asJSON(v.Status.Upstream), asJSON(v.Status.Published), asJSON(v.Status.Injected))
		if change := v.Status.Change; change != nil {
			line += fmt.Sprint(change.PackageRevision, change.Workspace, change.Lifecycle, change.Commit, change.Tree)
		}
		all = append(all, line)
	}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		all = append(all, fmt.Sprint(r.Name, conditions.IsReady(r), r.Spec.Lifecycle, r.Status.Lifecycle, r.Status.Commit, r.Status.Tree, r.Status.Ref,
			r.Status.Revision, r.Status.PackageVariant, asJSON(r.Status.UpstreamLock)))
	}
	slices.Sort(all)
	return all
}
