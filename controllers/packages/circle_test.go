package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// copied makes a variant of the mono repository that makes one package of another by branch, and publishes it.
func (p *plane) copied(from, to string, change ...func(*packagesv1.PackageVariantSpec)) *packagesv1.PackageVariant {
	p.Helper()
	return p.variantNamed(strings.ReplaceAll(from+"-to-"+to, "/", "."), append([]func(*packagesv1.PackageVariantSpec){func(s *packagesv1.PackageVariantSpec) {
		s.Upstream = packagesv1.Upstream{Repo: "mono", Package: from, Branch: "main"}
		s.Downstream, s.AdoptionPolicy = packagesv1.Downstream{Repo: "mono", Package: to}, packagesv1.AdoptExisting
		always(s)
	}}, change...)...)
}

// mono is a repository with the package a.
func (p *plane) mono() *upstream.Edited {
	p.Helper()
	mono := p.repository("mono")
	mono.Commit("main", "a", upstream.Text(map[string]string{
		"a/Kptfile": strings.ReplaceAll(kptfile, "app", "a"), "a/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
	}))
	return mono
}

// TestAVariantOverlapsNoUpstreamOfItsOwn: each publication would be the reason of the next one.
func TestAVariantOverlapsNoUpstreamOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	mono := p.mono()
	before := refs(mono)
	sub := p.packages("sub")
	sub.Spec.GitRepositoryRef.Name, sub.Spec.Directory = "mono", "a"
	p.create(sub)
	for _, c := range []struct {
		from, to string
		change   func(*packagesv1.PackageVariantSpec)
	}{
		{"a", "a/b", func(*packagesv1.PackageVariantSpec) {}},
		{"a/c", "a", func(*packagesv1.PackageVariantSpec) {}},
		{"a", "d", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Repo = "sub" }},
		{"a", "e", func(s *packagesv1.PackageVariantSpec) { s.Upstream.Branch, s.Downstream.Package = "", "a/e" }},
		{"a", "f", func(s *packagesv1.PackageVariantSpec) {
			s.Upstream.Branch, s.Upstream.Range, s.Downstream.Package = "", ">=1.0.0", "a/f"
		}},
	} {
		v := p.copied(c.from, c.to, c.change)
		fails(p, v, packagesv1.InvalidSpecReason, "overlaps the variant's own downstream package")
		if !conditions.IsStalled(v) {
			t.Errorf("it is tried again: %s", said(v))
		}
	}
	if now := refs(mono); now != before {
		t.Errorf("the refs are\n%s", now)
	}
}

// TestACircleOfVariantsIsRefusedWhereItCloses: at the youngest, with the names of the others. The others go on, and so does it once
// there is no circle.
func TestACircleOfVariantsIsRefusedWhereItCloses(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	mono := p.mono()
	p.published(p.copied("a", "b"), "v1")
	middle := p.copied("b", "c")
	p.published(middle, "v1")
	pinned := p.copied("c", "a", func(s *packagesv1.PackageVariantSpec) {
		s.Upstream.Branch, s.Upstream.Revision, s.Approval = "", 1, nil
	})
	p.drafted(pinned, mono, func(upstream.Files) bool { return true })
	p.delete(pinned)
	p.gone(pinned)
	last := p.copied("c", "a", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "a" })
	fails(p, last, packagesv1.CircularUpstreamReason, p.namespace+"/a-to-b, "+p.namespace+"/b-to-c")
	if tags := mono.Raw("tag", "-l", "a/*"); tags != "" {
		t.Errorf("the circle is closed: %s", tags)
	}
	p.ask(middle, func() { middle.Spec.DryRun = true })
	p.published(last, "v1")
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(middle), middle); err != nil || middle.Status.Published.Revision != "v1" {
		t.Errorf("%v: %s", err, said(middle))
	}
}
