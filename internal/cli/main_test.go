package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sluice.dev/sluice/internal/cli"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == build.Subcommand {
		os.Exit(build.Main())
	}
	os.Exit(testenv.MainWith(m, &env, testenv.Options{Audit: true}))
}

// answer is what a command said.
type answer struct {
	out, told string
	code      int
}

// run types a command, as whoever the kubeconfig is of.
func run(t *testing.T, kubeconfig string, args ...string) answer {
	t.Helper()
	return begin(t.Context(), kubeconfig, args...)()
}

// begin types a command that runs until the context ends, and gives what waits for its answer.
func begin(ctx context.Context, kubeconfig string, args ...string) func() answer {
	ended := make(chan answer, 1)
	go func() {
		ended <- execute(ctx, slices.Insert(slices.Clone(args), 1+slices.Index(args, "get"), "--kubeconfig", kubeconfig))
	}()
	return func() answer { return <-ended }
}

// typed types a command with nothing but its arguments.
func typed(t *testing.T, args ...string) answer {
	t.Helper()
	return execute(t.Context(), args)
}

// beginShown is begin for a command that is watched: it gives what was shown so far, too.
func beginShown(ctx context.Context, kubeconfig string, args ...string) (shown func() string, wait func() answer) {
	out, ended := &shared{}, make(chan answer, 1)
	go func() { ended <- executeTo(ctx, out, slices.Insert(slices.Clone(args), 1, "--kubeconfig", kubeconfig)) }()
	return out.String, func() answer { return <-ended }
}

// shared is a buffer that may be read while it is written, until it is closed as a pipe is.
type shared struct {
	mu     sync.Mutex
	text   bytes.Buffer
	closed bool
}

func (s *shared) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, syscall.EPIPE
	}
	return s.text.Write(text)
}

func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func execute(ctx context.Context, args []string) answer { return executeTo(ctx, &shared{}, args) }

func executeTo(ctx context.Context, out *shared, args []string) answer {
	told := &shared{}
	root := &cobra.Command{Use: "sluice", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.Commands(genericiooptions.IOStreams{Out: out, ErrOut: told}, env.Scheme)...)
	root.SetOut(out)
	root.SetErr(told)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(told, err)
	}
	return answer{out.String(), told.String(), cli.ExitCode(errors.Join(err))}
}

// anonymous is a kubeconfig without a login.
func anonymous(t *testing.T) string {
	t.Helper()
	return kubeconfigAs(t, clientcmdapi.NewAuthInfo())
}

// kubeconfigAs is a kubeconfig with another login.
func kubeconfigAs(t *testing.T, login *clientcmdapi.AuthInfo) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = login
	}
	place := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, place); err != nil {
		t.Fatal(err)
	}
	return place
}
