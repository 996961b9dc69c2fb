package e2e

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// sluice types a command in the scene's namespace, and returns what it prints. The test ends if it ends in another way.
func (s *scene) sluice(code int, arguments ...string) string {
	s.t.Helper()
	command := s.command(arguments...)
	printed, err := command.CombinedOutput()
	s.exited(command, err, code, string(printed))
	return string(printed)
}

// command is a command that is typed in the scene's namespace.
func (s *scene) command(arguments ...string) *exec.Cmd {
	command := exec.CommandContext(s.t.Context(), program(s.t), append(arguments, "-n", s.namespace)...)
	command.Env = append(os.Environ(), "HOME="+s.t.TempDir(), "KUBECONFIG="+env.Kubeconfig, "LC_ALL=C.UTF-8")
	return command
}

// exited fails the test unless the command has ended with the code.
func (s *scene) exited(command *exec.Cmd, err error, code int, printed string) {
	s.t.Helper()
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit || command.ProcessState.ExitCode() != code {
		s.t.Fatalf("%s: %v\n%s\n%s", strings.Join(command.Args, " "), err, printed, s.manager.Log())
	}
}

// saying fails the test if the text lacks one of these.
func (s *scene) saying(text string, wanted ...string) {
	s.t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			s.t.Errorf("%q is not in %s", want, text)
		}
	}
}

// TestCommandsAct: a push is brought in at once, work stops and goes on, and what is waited for comes.
func TestCommandsAct(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	s.saying(s.sluice(0, "wait", "gitrepo/app", "--timeout", "4m"), "✔ GitRepository "+s.namespace+"/app  Ready: stored artifact for revision '"+mainAt(first)+"'")
	s.saying(s.sluice(0, "reconcile", "gitrepo/app"), "✔ GitRepository "+s.namespace+"/app  unchanged, ")

	second := repository.Commit("main", "Second", oneFile("replicas: 2\n"))
	s.saying(s.sluice(0, "reconcile", "gitrepo/app"), mainAt(first[:12])+" → "+mainAt(second[:12])+", ")
	s.ready("app", mainAt(second))

	s.sluice(0, "suspend", "gitrepo", "--all", "--reason", "a move")
	s.saying(s.sluice(0, "get", "gitrepo"), "Suspended by admin: a move")
	s.saying(s.sluice(2, "reconcile", "gitrepo/app"), "it is suspended by admin: a move", "sluice resume gitrepository/app -n "+s.namespace)
	third := repository.Commit("main", "Third", oneFile("replicas: 3\n"))
	s.saying(s.sluice(0, "resume", "gitrepo/app", "--wait"), "resumed", mainAt(second[:12])+" → "+mainAt(third[:12]))

	s.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Reference = &sourcev1.GitRepositoryRef{Branch: "none"} })
	s.saying(s.sluice(1, "reconcile", "gitrepo/app"), "✗ GitRepository "+s.namespace+"/app  Failed: GitOperationFailed: ", "refs/heads/none")
	// It is told what was seen last, if the API server has answered in that time.
	told := ""
	for limit := 100 * time.Millisecond; limit < time.Minute && !strings.Contains(told, "Failed"); limit *= 2 {
		told = s.sluice(4, "wait", "gitrepo/app", "--timeout", limit.String())
	}
	s.saying(told, "--timeout has passed: Failed: GitOperationFailed: ")

	if err := env.Client.Delete(t.Context(), s.get("app")); err != nil {
		t.Fatal(err)
	}
	s.saying(s.sluice(0, "wait", "gitrepo/app", "--for", "gone"), "✔ GitRepository "+s.namespace+"/app  gone")
}

// TestCommandsActOnModules: with all that an installation takes from, in its order.
func TestCommandsActOnModules(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{"settings.yaml": settings("settings", "1.0.0")})
	s.install("app")
	s.saying(s.sluice(0, "wait", "app", "--for", "version=1.0.0", "--timeout", "4m"), "✔ ModuleInstallation "+s.namespace+"/app  1.0.0; Ready: ")
	s.sluice(0, "wait", "app", "--for", "healthy", "--timeout", "4m")
	s.sluice(0, "wait", "app", "--for", "uptodate", "--timeout", "4m")
	lines := strings.Split(strings.TrimSpace(s.sluice(0, "reconcile", "app", "--with-source")), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	for i, want := range []string{"✔ OCIRepository " + s.system + "/", "✔ ModuleTemplate " + s.system + "/", "✔ ModuleInstallation " + s.namespace + "/app  1.0.0, unchanged, "} {
		s.saying(lines[i], want)
	}
	s.saying(s.sluice(0, "suspend", "app"), "suspended")
	s.saying(s.sluice(0, "wait", "app"), "Suspended")
	s.saying(s.sluice(0, "resume", "app", "--wait"), "1.0.0, unchanged, ")
}
