package buckets

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/programs"
)

// The keys of a Server of S3.
const (
	AccessKey = "sluice-test"
	SecretKey = "sluice-test-secret"
)

// Server is a server that was built from a module of its own, see tests/servers.
type Server struct {
	// Address is what it printed: where it listens.
	Address string

	process *exec.Cmd
	input   io.Closer
}

// Serve starts one of the servers. It ends with the test.
func Serve(t upstream.TB, root, name string) *Server {
	t.Helper()
	s, err := Start(context.WithoutCancel(t.Context()), root, name)
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start builds the servers, if they are not, and starts one.
func Start(ctx context.Context, root, name string) (*Server, error) {
	path, err := programs.Path(ctx, root, name)
	if err != nil {
		return nil, err
	}
	s := &Server{process: exec.CommandContext(ctx, path)}
	s.process.Env = append(os.Environ(), "ACCESS_KEY="+AccessKey, "SECRET_KEY="+SecretKey)
	s.process.Stderr = os.Stderr
	if s.input, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	lines := bufio.NewReader(output)
	line, err := lines.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read where %s listens: %w", name, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	s.Address = strings.TrimSpace(line)
	return s, s.listens(ctx)
}

// listens waits until somebody answers: a server may say where it is going to listen.
func (s *Server) listens(ctx context.Context) error {
	for range 1000 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.Address, "http://"))
		if err == nil {
			return conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("nobody listens on %s", s.Address)
}

// Close ends the server.
func (s *Server) Close() {
	_ = s.input.Close()
	_ = s.process.Wait()
}
