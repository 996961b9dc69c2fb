package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long the manager may take to stop before it is killed.
const stopTimeout = 3 * time.Minute

// ManagerOptions say how the program is run.
type ManagerOptions struct {
	Binary     string
	Kubeconfig string
	// Storage is the folder of artifacts.
	Storage string
	// Flags are added to the ones that make the program live on free loopback ports, and fetch from others there.
	Flags []string
	// Env is added to the environment.
	Env []string
	// Prepare changes how the process is started, which is then still the manager; may be nil.
	Prepare func(*exec.Cmd)
	// Log takes a copy of what the program prints; may be nil.
	Log io.Writer
}

// Manager is the program, running as a process of its own.
type Manager struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu    sync.Mutex
	lines []string
}

// StartManager starts the program. It does not wait until the program is ready.
func StartManager(options ManagerOptions) (*Manager, error) {
	flags := append([]string{
		"manager", "--metrics-addr=0", "--health-addr=0", "--storage-addr=127.0.0.1:0", "--storage-path=" + options.Storage,
		"--git-cache-path=" + options.Storage + "-cache", "--egress-allow-loopback", "--log-encoding=console",
	}, options.Flags...)
	cmd := exec.Command(options.Binary, flags...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+options.Kubeconfig), options.Env...)
	if options.Prepare != nil {
		options.Prepare(cmd)
	}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("read the manager's log: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	m := &Manager{cmd: cmd, done: make(chan struct{})}
	go m.follow(pipe, options.Log)
	return m, nil
}

func (m *Manager) follow(pipe io.Reader, log io.Writer) {
	scanner := bufio.NewScanner(pipe)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		m.mu.Lock()
		m.lines = append(m.lines, scanner.Text())
		m.mu.Unlock()
		if log != nil {
			_, _ = fmt.Fprintln(log, scanner.Text())
		}
	}
	m.err = m.cmd.Wait()
	close(m.done)
}

// Log is what the program has printed so far.
func (m *Manager) Log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.lines, "\n")
}

// Pid is the process id.
func (m *Manager) Pid() int { return m.cmd.Process.Pid }

// Done is closed when the process has ended.
func (m *Manager) Done() <-chan struct{} { return m.done }

// Kill ends the process at once, as a crash does, and waits for it.
func (m *Manager) Kill() {
	_ = m.cmd.Process.Kill()
	<-m.done
}

// Stop asks the process to stop and waits for it. An exit status other than 0 is an error.
func (m *Manager) Stop() error {
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the manager: %w", err)
	}
	select {
	case <-m.done:
	case <-time.After(stopTimeout):
		m.Kill()
		return fmt.Errorf("the manager did not stop within %s", stopTimeout)
	}
	if m.err != nil {
		return fmt.Errorf("the manager ended with %w:\n%s", m.err, m.Log())
	}
	return nil
}
