package packages_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// effort is what a move upstream has cost.
type effort struct {
	requests        int64
	pushes, fetches int
}

// TestAMoveUpstreamIsWorkForThoseItAffects: requests to the API server grow with the variants of the package that moves and with no
// others, which stay as they are; what is asked of Git grows with neither.
func TestAMoveUpstreamIsWorkForThoseItAffects(t *testing.T) {
	t.Parallel()
	p := newPlane(t, frequent)
	blueprints, cluster := p.stocked(readme)
	other := func(image string) upstream.Files {
		return upstream.Text(map[string]string{"other/Kptfile": kptfile, "other/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image)})
	}
	blueprints.Tag("other/v1", blueprints.Commit("main", "other", other("1.0.0")), false)
	var affected, spared []*packagesv1.PackageVariant
	grow := func(to int) {
		for i := len(affected); i < to; i++ {
			for of, all := range map[string]*[]*packagesv1.PackageVariant{"app": &affected, "other": &spared} {
				name := fmt.Sprintf("%s-%d", of, i)
				*all = append(*all, p.variantNamed(name, func(s *packagesv1.PackageVariantSpec) {
					s.Upstream.Package, s.Downstream.Package = of, name
				}))
			}
		}
		p.haveImage(cluster, spared, "1.0.0")
	}
	move := func(revision int) effort {
		image := fmt.Sprintf("%d.0.0", revision)
		p.quiet(cluster)
		before, requests := p.versions(spared), p.requests.Load()
		p.server.Reset()
		blueprints.Tag(fmt.Sprintf("app/v%d", revision), blueprints.Commit("main", "app", plain(image)), false)
		p.haveImage(cluster, affected, image)
		p.quiet(cluster)
		if after := p.versions(spared); !maps.Equal(before, after) {
			t.Errorf("variants of another package were written to: %v, before %v", after, before)
		}
		return effort{p.requests.Load() - requests, p.server.Count(upstream.Push), p.server.Count(upstream.Fetch)}
	}
	const few, many = 3, 9
	grow(few)
	small := move(2)
	grow(many)
	large := move(3)
	t.Logf("%d variants: %+v, %d variants: %+v", few, small, many, large)
	if large.requests > small.requests*many/few+many {
		t.Errorf("%d requests to the API server for %d variants, and %d for %d", small.requests, few, large.requests, many)
	}
	for size, got := range map[int]effort{few: small, many: large} {
		// One to draft, and another one where somebody came late; one fetch upstream, one request that tells whether the branch has the
		// new tag, and one more to be sure.
		if got.pushes > 2 || got.fetches > 4 {
			t.Errorf("%d variants: %d pushes, %d fetches", size, got.pushes, got.fetches)
		}
	}
}

// haveImage waits until the drafts of all variants have the image.
func (p *plane) haveImage(in *upstream.Edited, all []*packagesv1.PackageVariant, image string) {
	p.Helper()
	for _, v := range all {
		p.drafted(v, in, func(files upstream.Files) bool {
			return strings.Contains(files[v.Spec.Downstream.Package+"/deployment.yaml"].Content, "app:"+image+"\n")
		})
	}
}

// versions are the resource versions of variants, by name.
func (p *plane) versions(of []*packagesv1.PackageVariant) map[string]string {
	p.Helper()
	all := map[string]string{}
	for _, v := range of {
		if err := env.Client.Get(p.Context(), client.ObjectKeyFromObject(v), v); err != nil {
			p.Fatal(err)
		}
		all[v.Name] = v.ResourceVersion
	}
	return all
}
