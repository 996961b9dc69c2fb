package packages_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream"
)

// TestARepositoryTakesNoMoreThanItsShare of memory and of temporary files: others read theirs beside it.
func TestARepositoryTakesNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	noise := func() string {
		text := make([]byte, 12<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(text) // It never fails.
		return string(text)
	}
	for name, c := range map[string]struct {
		reason string
		fill   func(*upstream.Edited)
		memory int64
		flag   string
	}{
		"objects": {"Trees are put together from deltas.", func(e *upstream.Edited) { e.Bulk("main", 50_000, 2_000_000) }, 3 << 20, "--memory"},
		"bytes":   {"A large pack is kept in a file.", func(e *upstream.Edited) { e.Commit("main", "m", upstream.Text(map[string]string{"noise": noise()})) }, 16 << 20, "--files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, func(p *plane) {
				p.memory, p.files = memory.New(c.memory, "--memory"), memory.NewFiles(16<<20, "--files")
			})
			c.fill(p.repository("large"))
			large, small := &packagesv1.Repository{ObjectMeta: p.meta("large")}, &packagesv1.Repository{ObjectMeta: p.meta("small")}
			isTooLarge := func(r *packagesv1.Repository) (bool, string) {
				return strings.Contains(said(r), "not enough") && strings.Contains(said(r), c.flag), said(r)
			}
			until(p, large, c.reason, isTooLarge)
			head := p.repository("small").Commit("main", "app", plain("1.0.0"))
			until(p, small, "the other one is read", func(r *packagesv1.Repository) (bool, string) {
				return conditions.IsReady(r) && r.Status.Head == head && r.Status.Packages == 1, said(r)
			})
			until(p, large, "it is as large as before", isTooLarge)
		})
	}
}
