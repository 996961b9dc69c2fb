package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// hasty is a guard without a grace period.
func hasty(percent int32) *packagesv1.DeletionGuard {
	return &packagesv1.DeletionGuard{MinPercent: new(percent), GracePeriod: &metav1.Duration{}}
}

// set makes a set of the blueprint app with one target. Its guard has no grace period.
func (p *plane) set(target packagesv1.Target, change ...func(*packagesv1.PackageVariantSetSpec)) *packagesv1.PackageVariantSet {
	p.Helper()
	made := &packagesv1.PackageVariantSet{ObjectMeta: p.meta("fleet"), Spec: packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: "blueprints", Package: "app"}, Targets: []packagesv1.Target{target},
		ServiceAccountName: "reader", DeletionGuard: hasty(packagesv1.DefaultGuardPercent),
	}}
	for _, c := range change {
		c(&made.Spec)
	}
	p.create(made)
	return made
}

// named are Repositories of which nothing is known but the name.
func (p *plane) named(labels map[string]string, names ...string) {
	p.Helper()
	for _, name := range names {
		p.create(&packagesv1.Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: labels},
			Spec:       packagesv1.RepositorySpec{GitRepositoryRef: packagesv1.LocalReference{Name: "none"}},
		})
	}
}

// spread waits until the variants are where they should be, 'repository/package' each, and the set says so.
func (p *plane) spread(set *packagesv1.PackageVariantSet, want ...string) []packagesv1.PackageVariant {
	p.Helper()
	var list packagesv1.PackageVariantList
	testenv.Eventually(p.T, fmt.Sprintf("variants at %v", want), func(ctx context.Context) (bool, string) {
		list = packagesv1.PackageVariantList{}
		if err := env.Client.List(ctx, &list, client.InNamespace(p.namespace)); err != nil {
			return false, err.Error()
		}
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return false, err.Error()
		}
		var have []string
		for _, v := range list.Items {
			have = append(have, v.Spec.Downstream.Repo+"/"+v.Spec.Downstream.Package)
		}
		slices.Sort(have)
		return slices.Equal(have, want) && int(set.Status.Variants) == len(want), fmt.Sprintf("%v, %d in status, %s", have, set.Status.Variants, said(set))
	})
	return list.Items
}

// selects is a target of Repositories with the label. What is left in Git stays, as these were never read.
func selects(label string) packagesv1.Target {
	return packagesv1.Target{
		RepositorySelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}},
		Template:           &packagesv1.VariantTemplate{DeletionPolicy: packagesv1.DeletionOrphan},
	}
}

// unlabel takes a label away from an object.
func (p *plane) unlabel(obj client.Object, key string) {
	p.Helper()
	if err := env.Client.Get(p.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		p.Fatal(err)
	}
	p.ask(obj, func() {
		labels := obj.GetLabels()
		delete(labels, key)
		obj.SetLabels(labels)
	})
}

func TestASetDraftsWhereItsTargetsAre(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, north, south := p.repository("blueprints"), p.repository("north"), p.repository("south")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": deployment})), false)
	for _, r := range []*upstream.Edited{north, south} {
		r.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	}
	set := p.set(packagesv1.Target{
		Repositories: []packagesv1.RepositoryTarget{{Name: "north"}, {Name: "south", PackageNames: []string{"web/one", "web/two"}}},
		Template:     &packagesv1.VariantTemplate{LabelExprs: []packagesv1.MapExpr{{Key: "at", ValueExpr: "repository.name + '.' + packageDefault.replace('/', '.')"}}},
	})
	p.spread(set, "north/app", "south/web/one", "south/web/two")
	until(p, set, "all variants are drafted", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.Targets == 3 && s.Status.ReadyVariants == 3 && s.Status.OpenVariants == 3, fmt.Sprintf("%+v", s.Status)
	})
	if got := south.Tree("drafts/web/two/packagevariant-1")["web/two/Kptfile"].Content; !strings.Contains(got, "at: south.web.two") {
		t.Errorf("the label is not on the package:\n%s", got)
	}
	p.ask(set, func() {
		set.Spec.Targets[0].Template.LabelExprs[0].ValueExpr = "'new'"
	})
	testenv.Eventually(t, "the drafts follow the template", func(context.Context) (bool, string) {
		got := north.Tree("drafts/app/packagevariant-1")["app/Kptfile"].Content
		return strings.Contains(got, "at: new"), got
	})
}

func TestTargetsComeAndGoByTheirLabels(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	labels := map[string]string{"edge": "yes"}
	p.named(labels, "a", "b", "c")
	p.named(nil, "other")
	set := p.set(selects("edge"))
	before := p.spread(set, "a/app", "b/app", "c/app")
	p.named(labels, "d")
	after := p.spread(set, "a/app", "b/app", "c/app", "d/app")
	for _, v := range before {
		if !slices.ContainsFunc(after, func(o packagesv1.PackageVariant) bool { return o.UID == v.UID && o.Generation == v.Generation }) {
			t.Errorf("%s was changed by a target that came", v.Name)
		}
	}
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("b")}, "edge")
	p.spread(set, "a/app", "c/app", "d/app")
}

func TestObjectsAreTargets(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	p.named(nil, "north-config", "south-config")
	cluster := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: map[string]string{"cluster": "yes"}}}
	}
	p.create(cluster("north"), cluster("nowhere"))
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{
			APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cluster": "yes"}},
		},
		Template: &packagesv1.VariantTemplate{
			Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "target.name + '-config'"}, DeletionPolicy: packagesv1.DeletionOrphan,
		},
	})
	p.spread(set, "north-config/app")
	until(p, set, "the target without a Repository is a problem", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.ProblemCount == 1 && s.Status.Problems[0].Target == "targets[0], ConfigMap nowhere" &&
			strings.Contains(s.Status.Problems[0].Message, `"nowhere-config"`) && conditions.GetReason(s, "Ready") == packagesv1.TargetsFailedReason, fmt.Sprintf("%+v", s.Status)
	})
	p.create(cluster("south"))
	p.spread(set, "north-config/app", "south-config/app")
	p.unlabel(&corev1.ConfigMap{ObjectMeta: p.meta("south")}, "cluster")
	p.spread(set, "north-config/app")
	p.named(nil, "nowhere-config")
	p.spread(set, "north-config/app", "nowhere-config/app")
	until(p, set, "nothing is wrong any more", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.ProblemCount == 0 && len(s.Status.Problems) == 0, fmt.Sprintf("%+v", s.Status)
	})
}

func TestWhoMayNotListHasNoTargets(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.create(&corev1.ServiceAccount{ObjectMeta: p.meta("reader")})
	p.named(nil, "north")
	set := p.set(packagesv1.Target{ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "Secret"}}, func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets = append(s.Targets, packagesv1.Target{Repositories: []packagesv1.RepositoryTarget{{Name: "north"}}})
	})
	until(p, set, "the right that lacks is named", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.GetReason(s, "Ready") == packagesv1.TargetsForbiddenReason && strings.Contains(said(s), "secrets is forbidden"), said(s)
	})
}

// TestTheGuardCountsNobodyTwice: variants that wait for their deletion are no reason to let the others go as well.
func TestTheGuardCountsNobodyTwice(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.named(map[string]string{"edge": "yes"}, "a", "b", "c", "d")
	target := selects("edge")
	target.Template = nil // The Repositories cannot be read, and so what is kept there cannot be let go of.
	set := p.set(target)
	all := []string{"a/app", "b/app", "c/app", "d/app"}
	p.spread(set, all...)
	going := func(want ...string) {
		testenv.Eventually(t, fmt.Sprintf("deletions of %v", want), func(context.Context) (bool, string) {
			var have []string
			for _, v := range p.spread(set, all...) {
				if !v.DeletionTimestamp.IsZero() {
					have = append(have, v.Spec.Downstream.Repo)
				}
			}
			slices.Sort(have)
			return slices.Equal(have, want), fmt.Sprint(have)
		})
	}
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("a")}, "edge")
	going("a")
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("b")}, "edge")
	going("a", "b")
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("c")}, "edge")
	until(p, set, "the third one is kept", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsTrue(s, packagesv1.DeletionGuardedCondition) && s.Status.Unwanted == 1, fmt.Sprintf("%+v", s.Status)
	})
	p.unlabel(&packagesv1.Repository{ObjectMeta: p.meta("d")}, "edge")
	until(p, set, "and the last one", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsTrue(s, packagesv1.DeletionGuardedCondition) && s.Status.Unwanted == 2, fmt.Sprintf("%+v", s.Status)
	})
	going("a", "b")
}
