// Package upstream runs real upstreams for tests, demos and benches: git repositories served by git http-backend
// and by OpenSSH's sshd, with faults that can be switched while they run.
// It does not know who fetches from them; it needs no *testing.T, and nothing here reaches beyond loopback.
package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Environ is a hermetic environment for git: no configuration of the machine or of the user, a fixed identity,
// C locale and UTC. Home is taken as the home folder and need not exist.
func Environ(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + home,
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=" + identityName,
		"GIT_AUTHOR_EMAIL=" + identityMail,
		"GIT_COMMITTER_NAME=" + identityName,
		"GIT_COMMITTER_EMAIL=" + identityMail,
		// A repository made by another user of this machine is still ours to serve.
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=safe.directory",
		"GIT_CONFIG_VALUE_0=*",
		// Nobody needs a test's repository after a power cut, and to wait for the disk is half of what a commit takes.
		"GIT_CONFIG_KEY_1=core.fsync",
		"GIT_CONFIG_VALUE_1=none",
	}
}

// Command prepares the git program in the hermetic environment, with extra environment variables as name=value.
// It runs in dir, and is killed with all its children when ctx is done.
func Command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(Environ(dir), env...)
	// A killed git leaves git-remote-https behind, which would go on to wait for a server that hangs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Git runs git as a client in the hermetic environment and returns what it printed. An error carries what git
// said on its standard error.
func Git(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	return run(Command(ctx, dir, env, args...), nil)
}

func run(cmd *exec.Cmd, stdin []byte) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), commandError(cmd, err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

func commandError(cmd *exec.Cmd, err error, stderr []byte) error {
	text := strings.TrimSpace(string(stderr))
	if text == "" {
		return fmt.Errorf("run %q: %w", cmd.Args, err)
	}
	return fmt.Errorf("run %q: %w: %s", cmd.Args, err, text)
}

// programs gives the folder where git keeps http-backend.
func programs(ctx context.Context) (string, error) {
	out, err := Git(ctx, os.TempDir(), nil, "--exec-path")
	if err != nil {
		return "", err
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is missing: install the whole git package (Debian: git)", backend)
	} else if err != nil {
		return "", err
	}
	return filepath.Dir(backend), nil
}
