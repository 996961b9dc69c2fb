package packages_test

import (
	"context"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/variant"
	"sluice.dev/sluice/tests/upstream"
)

// breaking panics once.
type breaking struct {
	variant.Renderer

	broke atomic.Bool
}

func (b *breaking) Render(ctx context.Context, p kpt.Package) (kpt.Package, []function.Result, error) {
	if !b.broke.Swap(true) {
		panic("oh")
	}
	return b.Renderer.Render(ctx, p)
}

// TestARoundThatBreaksOffIsMadeAgain: whoever waits for it orders once more.
func TestARoundThatBreaksOffIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(p *plane) { p.renderer = &breaking{Renderer: p.renderer} })
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	blueprints.Tag("app/v1", blueprints.Commit("main", "app", upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": deployment})), false)
	cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	p.drafted(p.variant(), cluster, func(upstream.Files) bool { return true })
}
