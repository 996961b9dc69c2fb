package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/tests/testenv"
)

func (d *demo) kubectlCommand(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig", d.env.Kubeconfig, "--namespace", namespace}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(d.assets, "kubectl"), args...)
	// The project's own manifests are named from its folder.
	cmd.Dir = testenv.Root()
	// Its caches go where the demo cleans up.
	cmd.Env = append(os.Environ(), "HOME="+d.dir)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// join shows arguments as a shell would want them.
func join(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if strings.ContainsAny(arg, " {}\"'|$") {
			quoted[i] = "'" + arg + "'"
		}
	}
	return strings.Join(quoted, " ")
}
