// Package programs has the programs that tests need beside the product's own module: servers, and Helm's command.
// It does not know what they are for.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/tests/upstream"
)

// Path builds the programs, if they are not, and returns where the one of the name is. Root is the folder of the product's module.
func Path(ctx context.Context, root, name string) (string, error) {
	build := exec.CommandContext(ctx, filepath.Join(root, "tests", "servers", "build.sh"))
	build.Stderr = os.Stderr
	folder, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("build the programs of tests: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(folder)), name), nil
}

// Helm is Helm's command, with a home of its own.
type Helm struct {
	t    upstream.TB
	path string
	home string
}

// HelmFor returns it for a test, whose folder home is.
func HelmFor(t upstream.TB, root, home string) *Helm {
	t.Helper()
	path, err := Path(context.WithoutCancel(t.Context()), root, "helm")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &Helm{t: t, path: path, home: home}
}

// Run runs it, and returns what it prints. What fails ends the test.
func (h *Helm) Run(arguments ...string) string {
	h.t.Helper()
	command := exec.CommandContext(h.t.Context(), h.path, arguments...)
	command.Dir = h.home
	command.Env = append(os.Environ(), "HOME="+h.home, "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	printed, err := command.CombinedOutput()
	if err != nil {
		h.t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, printed)
	}
	return string(printed)
}
