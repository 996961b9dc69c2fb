package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sluice.dev/sluice/internal/cli"
	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.MainWith(m, &env, testenv.Options{Audit: true})) }

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
	go func() { ended <- execute(ctx, kubeconfig, args) }()
	return func() answer { return <-ended }
}

func execute(ctx context.Context, kubeconfig string, args []string) answer {
	var out, told bytes.Buffer
	root := &cobra.Command{Use: "sluice", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.Commands(genericiooptions.IOStreams{Out: &out, ErrOut: &told}, env.Scheme)...)
	root.SetOut(&out)
	root.SetErr(&told)
	root.SetArgs(slices.Insert(slices.Clone(args), 1+slices.Index(args, "get"), "--kubeconfig", kubeconfig))
	err := root.ExecuteContext(ctx)
	if err != nil {
		told.WriteString(err.Error() + "\n")
	}
	return answer{out.String(), told.String(), cli.ExitCode(errors.Join(err))}
}

// anonymous is a kubeconfig without a login.
func anonymous(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = clientcmdapi.NewAuthInfo()
	}
	place := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, place); err != nil {
		t.Fatal(err)
	}
	return place
}
