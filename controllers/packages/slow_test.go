package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/variant"
	"sluice.dev/sluice/tests/upstream"
)

// stuck never renders packages with the marker.
type stuck struct{ variant.Renderer }

const marker = "never-rendered"

func (s stuck) Render(ctx context.Context, pkg kpt.Package) (kpt.Package, []function.Result, error) {
	for _, f := range pkg {
		if strings.Contains(string(f.Content), marker) {
			<-ctx.Done()
			return nil, nil, context.Cause(ctx)
		}
	}
	return s.Renderer.Render(ctx, pkg)
}

// TestSlowPackagesStopNoOther: together they take more time than a round has. One package is drafted and dropped all the same.
func TestSlowPackagesStopNoOther(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) { p.renderer = stuck{p.renderer} })
	blueprints, cluster := p.repository("blueprints"), p.upstreams.Repository("cluster.git")
	cluster.AcceptPushes()
	repository := p.packages("cluster")
	repository.Spec.Timeout = &metav1.Duration{Duration: 5 * time.Second}
	p.create(p.source("cluster", p.server), repository)
	cluster.Moved = func() { p.look("cluster") }
	cluster.Commit("main", "begin", upstream.Text(readme))
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", plain("1.0.0")), false)
	blueprints.Tag("bad/v1", blueprints.Commit("main", "bad", upstream.Text(map[string]string{
		"bad/Kptfile": kptfile, "bad/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + marker + "\n",
	})), false)
	var bad []*packagesv1.PackageVariant
	for i := range 5 {
		bad = append(bad, p.variantNamed(fmt.Sprintf("bad-%d", i), func(s *packagesv1.PackageVariantSpec) {
			s.Upstream.Package, s.Downstream.Package, s.Timeout = "bad", fmt.Sprintf("bad-%d", i), &metav1.Duration{Duration: time.Second}
		}))
	}
	good := p.variantNamed("good", func(s *packagesv1.PackageVariantSpec) { s.Downstream.Package = "good" })
	p.drafted(good, cluster, func(upstream.Files) bool { return true })
	for _, v := range bad {
		until(p, v, "it says that it takes too long", func(v *packagesv1.PackageVariant) (bool, string) {
			return conditions.GetReason(v, "Ready") == packagesv1.RenderFailedReason && strings.Contains(said(v), "spec.timeout of 1s is over"), said(v)
		})
	}
	until(p, repository, "the repository is well", func(r *packagesv1.Repository) (bool, string) { return conditions.IsReady(r), said(r) })
	branch := "refs/heads/drafts/good/" + good.Status.Change.Workspace
	if err := env.Client.Delete(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	p.gone(good)
	if strings.Contains(cluster.Raw("for-each-ref"), branch) {
		t.Error("its draft is still there")
	}
}
