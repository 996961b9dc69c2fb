package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestFlagsThatCannotBeAreNamed(t *testing.T) {
	t.Parallel()
	storage := t.TempDir()
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"unknown":     {"A flag that does not exist.", []string{"--no-such-flag"}, []string{"--no-such-flag"}},
		"argument":    {"There is nothing to say beside flags.", []string{"source"}, []string{`"source"`}},
		"plane":       {"A plane that does not exist.", []string{"--controllers=helm"}, []string{"--controllers", `"helm"`}},
		"algorithm":   {"An algorithm that nobody knows.", []string{"--artifact-digest-algo=md5"}, []string{"--artifact-digest-algo", `"md5"`}},
		"blake3":      {"An algorithm of Flux that is not served.", []string{"--artifact-digest-algo=blake3"}, []string{"--artifact-digest-algo", "blake3"}},
		"records":     {"The current artifact has to be kept.", []string{"--artifact-retention-records=0"}, []string{"--artifact-retention-records"}},
		"concurrent":  {"Somebody has to do the work.", []string{"--concurrent=0"}, []string{"--concurrent"}},
		"no-number":   {"A number has to be one.", []string{"--concurrent=many"}, []string{"--concurrent"}},
		"delays":      {"Delays have an order.", []string{"--min-retry-delay=2m", "--max-retry-delay=1m"}, []string{"--min-retry-delay", "--max-retry-delay"}},
		"negative":    {"Time does not run backwards.", []string{"--artifact-retention-ttl=-1s"}, []string{"--artifact-retention-ttl"}},
		"limit":       {"A limit of nothing allows nothing.", []string{"--git-max-pack-bytes=0"}, []string{"--git-max-pack-bytes"}},
		"egress":      {"A range of addresses has to be one.", []string{"--egress-deny=10.0.0.0"}, []string{"--egress-deny"}},
		"selector":    {"A selector has to be one.", []string{"--watch-label-selector=a=b=c"}, []string{"--watch-label-selector"}},
		"namespace":   {"One namespace has to be named.", []string{"--watch-all-namespaces=false"}, []string{"--watch-all-namespaces", "RUNTIME_NAMESPACE"}},
		"address":     {"An address has a port.", []string{"--storage-addr=localhost"}, []string{"--storage-addr"}},
		"path":        {"The storage has to exist.", []string{"--storage-path=" + storage + "/none"}, []string{"--storage-path"}},
		"events-addr": {"A receiver has a URL.", []string{"--events-addr=receiver"}, []string{"--events-addr"}},
		"several":     {"Everything is told at once.", []string{"--concurrent=0", "--artifact-digest-algo=md5"}, []string{"--concurrent", "--artifact-digest-algo"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			args := append([]string{
				"manager", "--metrics-addr=0", "--health-addr=0", "--storage-addr=127.0.0.1:0", "--storage-path=" + storage,
			}, c.args...)
			cmd := exec.CommandContext(ctx, program(t), args...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig, "RUNTIME_NAMESPACE=")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() <= 0 {
				t.Fatalf("ended with %v: %s", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("the answer lacks %q: %s", want, out)
				}
			}
		})
	}
}
