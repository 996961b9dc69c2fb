package packages_test

import (
	"fmt"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestManyConflictsDoNotStayInMemory: each variant could have 10,000 of them, with three values each.
func TestManyConflictsDoNotStayInMemory(t *testing.T) {
	t.Parallel()
	const many = 500
	p := newPlane(t)
	blueprints, cluster := p.stocked(readme)
	data := func(value string) string {
		var text strings.Builder
		text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: many\ndata:\n")
		for i := range many {
			fmt.Fprintf(&text, "  k%d: %s\n", i, value)
		}
		return text.String()
	}
	release := func(version, value string) {
		files := upstream.Text(map[string]string{"app/Kptfile": kptfile, "app/many.yaml": data(value)})
		blueprints.Tag("app/"+version, blueprints.Commit("main", version, files), false)
	}
	release("v2", "first")
	v := p.variant(initial)
	p.published(v, "v1")
	cluster.Commit("main", "people's", upstream.Text(map[string]string{"app/many.yaml": data("ours")}))
	release("v3", "theirs")
	until(p, v, "the conflicts are counted", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil && v.Status.Change.ConflictCount == many && len(v.Status.Change.Conflicts) == packagesv1.MaxConflicts, said(v)
	})
	if count := p.shared.ConflictsInMemory(); count > packagesv1.MaxConflicts {
		t.Errorf("%d conflicts stay in memory", count)
	}
	r := p.proposed(v)
	p.ask(r, func() {
		r.Spec.Lifecycle, r.Spec.ApprovedCommit = packagesv1.LifecyclePublished, r.Status.Commit
		r.Spec.ApprovedConflicts = v.Status.Change.ConflictDigest
	})
	p.published(v, "v2")
}
