package merge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt/merge"
)

// TestNoGateOrReportIsLost because the other side has none left.
func TestNoGateOrReportIsLost(t *testing.T) {
	t.Parallel()
	const head, mine = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n", "example.com/checked"
	gates := func(all ...string) string {
		text := "info:\n  readinessGates:\n"
		for _, gate := range all {
			text += "  - conditionType: " + gate + "\n"
		}
		text += "status:\n  conditions:\n"
		for _, gate := range all {
			text += "  - type: " + gate + "\n    status: \"True\"\n"
		}
		return text
	}
	for reason, test := range map[string]struct{ base, theirs, local, want string }{
		"Upstream has none left, and people have one more.": {gates("one"), "", gates("one", mine), gates(mine)},
		"People have none left, and upstream has one more.": {gates("one"), gates("one", mine), "", gates(mine)},
		"Nobody has one left.":                              {gates("one"), "", gates("one"), ""},
	} {
		file := func(text string) map[string]string { return map[string]string{"Kptfile": head + text} }
		got, conflicts, err := merge.Merge(files(file(test.base)), files(file(test.theirs)), files(file(test.local)), merge.Upstream)
		if err != nil || len(conflicts) > 0 {
			t.Fatalf("%s %v %v", reason, conflicts, err)
		}
		if diff := cmp.Diff(head+test.want, string(got["Kptfile"].Content)); diff != "" {
			t.Errorf("%s\n%s", reason, diff)
		}
	}
}
