package installation

import (
	"fmt"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestAppliedNamesSomeOfWhatCannotBeCounted: a release may bring a thousand kinds, and a condition holds 32 KiB: what is
// longer makes every write of the status fail.
func TestAppliedNamesSomeOfWhatCannotBeCounted(t *testing.T) {
	t.Parallel()
	r := round{inventory: &modulesv1.Inventory{Data: modulesv1.InventoryData{Current: &modulesv1.Release{Version: "1.0.0"}}}}
	for i := range 1000 {
		r.outcome.Uncounted = append(r.outcome.Uncounted, fmt.Sprintf("things%04d.services.cloud.example.com in all namespaces", i))
	}
	facts := applied(&modulesv1.ModuleInstallation{}, r, nil)
	if len(facts) != 1 || len(facts[0].Message) > maxMessage || !strings.Contains(facts[0].Message, "things0000") || !strings.HasSuffix(facts[0].Message, "997 more") {
		t.Errorf("facts: %.2000v", facts)
	}
}
