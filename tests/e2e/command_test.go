package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

// TestKubectlRunsTheCommands: as its plugin, with what the controllers say, and with the plugin's own exit codes.
func TestKubectlRunsTheCommands(t *testing.T) {
	t.Parallel()
	s, _, commit := newAppAndBroken(t)
	assets, err := testenv.Assets()
	if err != nil {
		t.Fatal(err)
	}
	plugins := t.TempDir()
	if err := os.Symlink(program(t), filepath.Join(plugins, "kubectl-sluice")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"get", "sources", "-n", s.namespace}, 0, []string{"gitrepository/app", "main@sha1:" + commit[:12], "Ready", "gitrepository/broken", "Failed", "refs/heads/none"}},
		{[]string{"get", "gitrepo/ap", "-n", s.namespace}, 2, []string{"sluice: get GitRepository \"ap\"", "  similar: app"}},
		{[]string{"get", "--none"}, 3, []string{"see kubectl sluice get --help"}},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), append([]string{"sluice"}, tc.args...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+env.Kubeconfig, "PATH="+plugins)
		out, err := cmd.CombinedOutput()
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != tc.code {
			t.Errorf("%v ended with %d: %s", tc.args, code, out)
		}
		for _, want := range tc.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%v did not say %q: %s", tc.args, want, out)
			}
		}
	}
}
