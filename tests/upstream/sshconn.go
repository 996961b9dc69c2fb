package upstream

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// SSHFault is what goes wrong with a connection. The zero SSHFault does nothing.
type SSHFault struct {
	drop, hang bool
	limit      int64 // bytes to the client before the fault; zero strikes at once
}

// DropSSH closes the connection before the server has said anything.
func DropSSH() SSHFault { return SSHFault{drop: true} }

// HangSSH accepts the connection and stays silent, until the client goes away or the server is closed.
func HangSSH() SSHFault { return SSHFault{hang: true} }

// CutSSHAfter closes the connection after n bytes to the client, the handshake's 2 KB or so included.
func CutSSHAfter(n int64) SSHFault { return SSHFault{drop: true, limit: n} }

// HangSSHAfter goes silent after n bytes to the client.
func HangSSHAfter(n int64) SSHFault { return SSHFault{hang: true, limit: n} }

// plannedSSH is a fault for a number of connections to come.
type plannedSSH struct {
	left  int
	fault SSHFault
}

// FailNext lets the fault strike the next n connections, after those planned before.
func (s *GitSSH) FailNext(n int, fault SSHFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, plannedSSH{left: n, fault: fault})
}

// Always lets the fault strike every connection that no planned fault strikes.
func (s *GitSSH) Always(fault SSHFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = fault
}

// Heal forgets all faults. Connections that are being struck stay so.
func (s *GitSSH) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.always = nil, SSHFault{}
}

// Cut closes all connections that there are.
func (s *GitSSH) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cut := range s.cuts {
		cut()
	}
	s.cuts = nil
}

func (s *GitSSH) fault() SSHFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		if s.faults[i].left > 0 {
			s.faults[i].left--
			return s.faults[i].fault
		}
	}
	return s.always
}

func (s *GitSSH) accept(ctx context.Context) {
	for {
		conn, err := s.wire.Accept()
		if err != nil {
			return // The listener was closed.
		}
		fault := s.fault()
		s.settled.Add(1)
		s.conns.Go(func() { s.serve(ctx, conn, fault) })
	}
}

// serve lets one sshd talk to the client through us.
func (s *GitSSH) serve(ctx context.Context, conn net.Conn, fault SSHFault) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	s.mu.Lock()
	s.cuts = append(s.cuts, cancel)
	s.mu.Unlock()
	context.AfterFunc(ctx, func() { conn.Close() })
	if fault.limit == 0 && fault != (SSHFault{}) {
		if fault.hang {
			_, _ = io.Copy(io.Discard, conn) // It ends when either side closes the connection.
		}
		return
	}
	args := []string{"-i", "-e", "-f", filepath.Join(s.dir, "sshd_config")}
	for _, kind := range s.kinds {
		args = append(args, "-h", s.hostKeyFile(kind))
	}
	cmd := exec.CommandContext(ctx, s.sshd, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	// sshd ends its children itself when it is asked to end; it gets five seconds for it.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stderr = logWriter{s}
	cmd.Stdout = &client{conn: conn, fault: fault, broken: cancel}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(logWriter{s}, "start sshd: %v\n", err)
		return
	}
	go func() {
		_, _ = io.Copy(stdin, conn) // It ends with the connection, which is closed below at the latest.
		stdin.Close()
	}()
	_ = cmd.Wait() // What went wrong stands in the log.
}

// client passes on what sshd says, until the fault strikes.
type client struct {
	conn   net.Conn
	fault  SSHFault
	sent   int64
	broken context.CancelFunc
}

func (c *client) Write(p []byte) (int, error) {
	if c.fault.limit == 0 {
		return c.conn.Write(p)
	}
	left := c.fault.limit - c.sent
	n, err := c.conn.Write(p[:min(int64(len(p)), left)])
	c.sent += int64(n)
	if err != nil || int64(len(p)) <= left {
		return n, err
	}
	if c.fault.hang {
		return len(p), nil // The rest is lost, and nothing more comes.
	}
	c.broken()
	return n, errBroken
}

// logWriter collects what the sshds say.
type logWriter struct{ s *GitSSH }

func (w logWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.log.Write(p)
}
