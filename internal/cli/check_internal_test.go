package cli

import "testing"

// TestAFaultStaysOne: whatever else could not be found out, before it or after it.
func TestAFaultStaysOne(t *testing.T) {
	t.Parallel()
	well, fault, unknown := finding{Good: new(true)}, finding{Good: new(false)}, finding{}
	for name, tc := range map[string]struct {
		found []finding
		want  int
	}{
		"None": {nil, 0}, "Well": {[]finding{well}, 0}, "Fault": {[]finding{well, fault}, ExitNo}, "Unknown": {[]finding{unknown, well}, ExitUnanswered},
		"Before": {[]finding{unknown, fault, well}, ExitNo}, "After": {[]finding{fault, unknown}, ExitNo},
	} {
		if got := ExitCode((checkup{tc.found}).verdict()); got != tc.want {
			t.Errorf("%s: it ends with %d, want %d", name, got, tc.want)
		}
	}
}
