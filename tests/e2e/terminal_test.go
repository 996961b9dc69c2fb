package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"sluice.dev/sluice/tests/testenv"
)

// atTerminal runs a command as somebody at a terminal does, who types the answer once the question is there.
func (s *scene) atTerminal(code int, question, answer string, command *exec.Cmd) string {
	s.t.Helper()
	terminal, err := pty.Start(command)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	var shown strings.Builder
	for buffer, answered := make([]byte, 4096), question == ""; err == nil; { // Linux fails to read when nobody is left to write.
		var n int
		n, err = terminal.Read(buffer)
		shown.Write(buffer[:n])
		if !answered && strings.Contains(shown.String(), question) {
			answered = true
			if _, err := terminal.WriteString(answer + "\n"); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.exited(command, command.Wait(), code, shown.String())
	return shown.String()
}

// TestAtATerminal: states have colours, unless that is not wanted, and what is waited for is told in one line that is gone in the end.
func TestAtATerminal(t *testing.T) {
	t.Parallel()
	s, _, _ := newAppAndBroken(t)
	for name, tc := range map[string]struct {
		environment []string
		painted     bool
	}{
		"Painted": {[]string{"TERM=xterm", "NO_COLOR="}, true},
		"NoColor": {[]string{"TERM=xterm", "NO_COLOR=1"}, false},
		"Dumb":    {[]string{"TERM=dumb", "NO_COLOR="}, false},
	} {
		command := s.command("get", "sources")
		command.Env = append(command.Env, tc.environment...)
		shown := s.atTerminal(0, "", "", command)
		if strings.Contains(shown, "\x1b[32m✔ Ready\x1b[0m") != tc.painted || strings.Contains(shown, "\x1b[31m✗ Failed\x1b[0m") != tc.painted || !strings.Contains(shown, "✔ Ready") {
			t.Errorf("%s: %q", name, shown)
		}
	}
	told, isTold := "", false
	for limit := 3 * time.Second; limit < 4*time.Minute && !isTold; limit *= 3 {
		told = s.atTerminal(4, "", "", s.command("wait", "gitrepository/app", "--for", "gone", "--timeout", limit.String()))
		isTold = strings.Contains(told, "\r\x1b[KGitRepository "+s.namespace+"/app  ") && strings.Count(told, "\r\x1b[K") >= 2
	}
	if !isTold {
		t.Errorf("what is waited for is told as %q", told)
	}
}

// TestShellsCompleteTheCommands: bash by the script that the program writes, kubectl by the program under the name that it looks for,
// and Flux's command by the plugin that it calls as Cobra's scripts call it.
func TestShellsCompleteTheCommands(t *testing.T) {
	t.Parallel()
	s, _, _ := newAppAndBroken(t)
	plugins := t.TempDir()
	for _, name := range []string{"sluice", "kubectl-sluice", "kubectl_complete-sluice", "flux-sluice"} {
		if err := os.Symlink(program(t), filepath.Join(plugins, name)); err != nil {
			t.Fatal(err)
		}
	}
	// What the package bash-completion brings is not everywhere, and compopt is for bash's own calls of the function alone.
	const script = `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
__ltrim_colon_completions() { :; }
compopt() { :; }
source <(sluice completion bash)
COMP_TYPE=9 COMP_WORDS=(sluice "$@") COMP_CWORD=$# COMP_LINE="sluice $*" COMP_POINT=${#COMP_LINE}
__start_sluice
printf '%s\n' "${COMPREPLY[@]}"`
	assets, err := testenv.Assets()
	if err != nil {
		t.Fatal(err)
	}
	typed := []string{"get", "-n", s.namespace, "gitrepository", ""}
	for name, line := range map[string][]string{
		"bash":    append([]string{"bash", "-u", "-c", script, "bash"}, typed...),
		"kubectl": append([]string{filepath.Join(assets, "kubectl"), "__complete", "sluice"}, typed...),
		"flux":    append([]string{filepath.Join(plugins, "flux-sluice"), "__complete"}, typed...),
	} {
		place, err := exec.LookPath(line[0])
		if err != nil {
			t.Fatal(err)
		}
		// Where the API server does not answer in its time, a shell is offered nothing.
		s.eventually(name+" completes", func(context.Context) (bool, string) {
			command := s.command()
			command.Path, command.Args, command.Err = place, line, nil
			command.Env = append(command.Env, "PATH="+plugins+":"+os.Getenv("PATH"))
			printed, err := command.Output()
			s.exited(command, err, 0, string(printed))
			lines := strings.Split(string(printed), "\n")
			return len(lines) > 1 && lines[0] == "app" && lines[1] == "broken", string(printed)
		})
	}
	wrong := s.command("get", "--none")
	wrong.Path = filepath.Join(plugins, "flux-sluice")
	wrong.Args[0] = wrong.Path
	printed, err := wrong.CombinedOutput()
	s.exited(wrong, err, 3, string(printed))
	s.saying(string(printed), "see flux sluice get --help")
}
