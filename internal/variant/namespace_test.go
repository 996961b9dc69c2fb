package variant_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/variant"
)

// TestANamespaceThatPeopleEditedIsRenamed: it is the same one under another name, and in conflict with nothing.
func TestANamespaceThatPeopleEditedIsRenamed(t *testing.T) {
	t.Parallel()
	last := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	next := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	next.Config.Namespace = "shop-west"
	local := edited(t, desired(t, last, "").Package, []edit{{"namespace.yaml", "  name: shop-eu\n", "  name: shop-eu\n  annotations:\n    mine: here\n"}})
	got := string(run(t, variant.Request{Last: told(t, local), Next: next, Local: local, Policy: merge.Fail}).Package["namespace.yaml"].Content)
	if strings.Count(got, "kind: Namespace") != 1 || !strings.Contains(got, "name: shop-west\n") || !strings.Contains(got, "mine: here\n") {
		t.Error(got)
	}
}
