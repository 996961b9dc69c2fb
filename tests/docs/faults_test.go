package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

// TestFaultsCanBePutBack: each patch of tests/faults applies, and says which broken rule shows that it was found.
func TestFaultsCanBePutBack(t *testing.T) {
	t.Parallel()
	patches, err := filepath.Glob(filepath.Join(testenv.Root(), "tests", "faults", "*.patch"))
	if err != nil || len(patches) == 0 {
		t.Fatalf("there are no patches: %v", err)
	}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^Finds: .`).Match(text) {
			t.Errorf("%s: no line begins with Finds", patch)
		}
		check := exec.CommandContext(t.Context(), "git", "apply", "--check", patch)
		check.Dir = testenv.Root()
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", patch, err, out)
		}
	}
}
