package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"sluice.dev/sluice/internal/cli"
)

// TestExamplesOfCommandsAreTyped: each line that the page shows, and each that a command shows of itself, names a command, flags that
// this has, and as many arguments as it takes. Those that ask an API server are run, where nobody answers: whatever comes of it, it is
// no wrong usage.
func TestExamplesOfCommandsAreTyped(t *testing.T) {
	t.Parallel()
	shown := map[string]string{}
	for _, block := range page(t, "docs/cli.md").Blocks("sh") {
		shown[fmt.Sprintf("docs/cli.md:%d", block.Line)] = block.Text
	}
	for _, command := range program().Commands() {
		shown["the help of "+command.Name()] = command.Example
	}
	typed := map[string]bool{}
	for from, text := range shown {
		for _, args := range words(t, from, text) {
			typed[args[0]] = true
			if err := parses(args); err != nil {
				t.Errorf("%s: sluice %s: %v", from, strings.Join(args, " "), err)
			}
		}
	}
	for _, command := range program().Commands() {
		if !typed[command.Name()] && !command.Hidden && command.Name() != "help" && command.Name() != "completion" {
			t.Errorf("there is no example of %s", command.Name())
		}
	}
	for name, wrong := range map[string]string{
		"Command": "gett", "Flag": "get --stat Failed", "Arguments": "history a b", "Missing": "plan", "Value": "plan foo --detail much", "Both": "reconcile foo --no-wait --timeout 1m",
	} {
		if parses(strings.Fields(wrong)) == nil {
			t.Errorf("%s: %q passes, so that the test finds nothing", name, wrong)
		}
	}
}

// program is the root of the commands.
func program() *cobra.Command {
	root := &cobra.Command{Use: "sluice", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.Commands(genericiooptions.NewTestIOStreamsDiscard(), env.Scheme)...)
	return root
}

// words are the arguments of each call in a script, as bash takes it apart.
func words(t *testing.T, from, script string) (calls [][]string) {
	t.Helper()
	folder := t.TempDir()
	shell := exec.CommandContext(t.Context(), "bash", "-eu", "-c", "sluice() { printf '%s\\0' \"$@\" >&3; printf '\\n' >&3; }\nexec 3>calls\n"+script)
	shell.Dir = folder
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", from, err, out)
	}
	text, err := os.ReadFile(filepath.Join(folder, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		calls = append(calls, strings.Split(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\x00"), "\x00"))
	}
	return calls
}

// parses says why a call is none. Commands that would reach for a registry, or serve, are not run.
func parses(args []string) error {
	root := program()
	command, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return err
	}
	if err := command.ValidateFlagGroups(); err != nil || slices.Contains([]string{"push", "release", "ui"}, command.Name()) {
		return err
	}
	args = append(slices.Clone(args), "--kubeconfig", env.Kubeconfig, "--server", "http://127.0.0.1:1")
	if slices.Contains(args, "approve") || slices.Contains(args, "resume") && slices.Contains(args, "--plan") {
		args = append(args, "--yes") // Nobody can be asked here.
	}
	root = program()
	root.SetArgs(args)
	if err := root.Execute(); cli.ExitCode(err) == cli.ExitUsage {
		return err
	}
	return nil
}
