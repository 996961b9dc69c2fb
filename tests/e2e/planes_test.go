package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

// TestAPlaneWithoutItsKindsIsToldAtOnce runs the program against an API server that serves sources alone, and against one
// that serves nothing of ours.
func TestAPlaneWithoutItsKindsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	bases := filepath.Join(testenv.Root(), "config", "crd", "bases")
	for name, tc := range map[string]struct {
		reason string
		crds   []string
		args   []string
		says   string
	}{
		"Named": {
			"What is asked for by name is wanted.",
			[]string{
				filepath.Join(bases, "source.toolkit.fluxcd.io_gitrepositories.yaml"),
				filepath.Join(bases, "source.toolkit.fluxcd.io_ocirepositories.yaml"),
				filepath.Join(bases, "source.toolkit.fluxcd.io_buckets.yaml"),
				filepath.Join(bases, "source.toolkit.fluxcd.io_helmrepositories.yaml"),
				filepath.Join(bases, "source.toolkit.fluxcd.io_helmcharts.yaml"),
			},
			[]string{"--controllers=source,modules"},
			"--controllers: modules needs kinds that the API server does not serve: modules.sluice.dev/v1alpha1 ModuleTemplate",
		},
		"Nothing": {"There is nothing to run.", []string{}, nil, "--controllers: the API server serves the kinds of no plane"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			bare, err := testenv.Start(testenv.Options{CRDs: tc.crds})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = bare.Stop() })
			args := append([]string{"manager", "--metrics-addr=0", "--health-addr=0", "--storage-addr=127.0.0.1:0", "--storage-path=" + t.TempDir()}, tc.args...)
			cmd := exec.CommandContext(t.Context(), program(t), args...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+bare.Kubeconfig)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Error("the program ended well")
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if last := lines[len(lines)-1]; len(lines) > 1 || !strings.Contains(last, tc.says) {
				t.Errorf("the answer is not one line with %q: %s", tc.says, out)
			}
		})
	}
}
