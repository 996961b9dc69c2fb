package testenv_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/testenv"
)

// TestDownloadsAreToldInOneLine: what a command says beside them, and its status, are as without.
func TestDownloadsAreToldInOneLine(t *testing.T) {
	t.Parallel()
	says := `echo result; for i in 1 2 3; do echo "go: downloading example.com/m$i v1.0.0" >&2; done; echo "wrong: go: downloading" >&2; exit 3`
	var out, told bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "tests", "quietly.sh"), "sh", "-c", says)
	command.Stdout, command.Stderr = &out, &told
	var exit *exec.ExitError
	if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("ended with %v", err)
	}
	if diff := cmp.Diff([]string{"result\n", "go: downloading modules (once)\nwrong: go: downloading\n"}, []string{out.String(), told.String()}); diff != "" {
		t.Errorf("standard output and error (-want +got):\n%s", diff)
	}
}
