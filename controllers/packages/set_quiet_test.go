package packages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// place is an object that is a target.
func (p *plane) place(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: map[string]string{"place": "yes"}}}
}

// fleet is a set with a package in the repository cluster for each place, when all of them have their drafts.
func (p *plane) fleet(places int, change ...func(*packagesv1.PackageVariantSetSpec)) *packagesv1.PackageVariantSet {
	p.Helper()
	p.mayRead()
	for i := range places {
		p.create(p.place(fmt.Sprintf("place-%02d", i)))
	}
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"place": "yes"}}},
		Template:       &packagesv1.VariantTemplate{Downstream: &packagesv1.DownstreamTemplate{Repo: "cluster", PackageExpr: "target.name"}},
	}, change...)
	p.allDrafted(set, places)
	return set
}

func (p *plane) allDrafted(set *packagesv1.PackageVariantSet, count int) {
	p.Helper()
	until(p, set, "all drafts", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && int(s.Status.OpenVariants) == count && int(s.Status.ReadyVariants) == count, fmt.Sprintf("%+v", s.Status)
	})
}

// answered asks for a round of the set, and waits for it.
func (p *plane) answered(set *packagesv1.PackageVariantSet, token string) {
	p.Helper()
	p.ask(set, func() { set.Annotations = map[string]string{meta.ReconcileRequestAnnotation: token} })
	until(p, set, "the round", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.LastHandledReconcileAt == token, said(s)
	})
}

// asksFor is how many requests beside watches are made during a round of the set.
func (p *plane) asksFor(set *packagesv1.PackageVariantSet, token string) int64 {
	p.Helper()
	before := p.requests.Load()
	p.answered(set, token)
	return p.requests.Load() - before
}

// TestOneTargetMoreIsOneVariantMore: no other variant is looked at, and a round in which nothing changes asks the API server nothing.
func TestOneTargetMoreIsOneVariantMore(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	_, cluster := p.stocked(readme)
	set := p.fleet(12)
	p.answered(set, "settled")

	// Others may still be at work on what went before, so that the quietest of some rounds counts.
	fewest := p.asksFor(set, "quiet")
	for i := 0; i < 20 && fewest != 1; i++ {
		fewest = min(fewest, p.asksFor(set, fmt.Sprintf("quiet-%d", i)))
	}
	if fewest != 1 {
		t.Errorf("a round over 12 targets makes %d requests beside watches, not that of its status alone", fewest)
	}

	looked, drafts := p.looks.counts(), strings.Count(refs(cluster), "\n")
	p.create(p.place("more"))
	p.allDrafted(set, 13)
	after := p.looks.counts()
	for object, count := range looked {
		if strings.HasPrefix(object, "*v1alpha1.PackageVariant ") && after[object] != count {
			t.Errorf("%s is looked at %d times because of another target", object, after[object]-count)
		}
	}
	if now := strings.Count(refs(cluster), "\n"); now != drafts+1 {
		t.Errorf("there are %d refs more", now-drafts)
	}

	writes, heads := p.writes.Load(), refs(cluster)
	p.ask(set, func() { set.Spec.Targets[0].Template.Downstream.PackageExpr = "'' + target.name" })
	until(p, set, "the edit is seen", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.ObservedGeneration == s.Generation && conditions.IsReady(s), said(s)
	})
	p.answered(set, "edited")
	if now := p.writes.Load() - writes; now > 3 || refs(cluster) != heads {
		t.Errorf("an edit that changes nothing makes %d writes beside that of the set's status", now)
	}
}
