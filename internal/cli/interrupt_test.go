package cli_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestCommandsAreInterrupted: at whichever of their first requests an API server does not answer, those by which the libraries ask
// which kinds there are among them.
func TestCommandsAreInterrupted(t *testing.T) {
	t.Parallel()
	namespace, content := golden(t)
	for _, line := range []string{
		"get", "tree foo", "trace cm/a", "plan foo --artifact " + content, "version", "check", "check --pre", "events foo -w",
	} {
		for nth := int32(1); nth <= 8; nth++ {
			ctx, interrupt := context.WithCancel(t.Context())
			released := make(chan struct{})
			var asked atomic.Int32
			server := before(t, func(_ http.ResponseWriter, r *http.Request) bool {
				if asked.Add(1) < nth {
					return false
				}
				interrupt()
				select {
				case <-r.Context().Done():
				case <-released:
				}
				return true
			})
			late := time.AfterFunc(4*time.Minute, func() { close(released) })
			got := begin(ctx, env.Kubeconfig, append(strings.Fields(line), "-n", namespace, "--server", server)...)()
			interrupt()
			if isHung := !late.Stop(); isHung || asked.Load() >= nth && got.code != 130 {
				t.Errorf("%s at request %d ended with %d, hung %v: %s", line, nth, got.code, isHung, got.told)
			}
			if asked.Load() < nth {
				break
			}
		}
	}
}

// TestWhatNobodyHasForeseen: such as a machine without room for files is not told to be a wrong flag.
func TestWhatNobodyHasForeseen(t *testing.T) {
	namespace, _ := golden(t)
	t.Setenv("TMPDIR", "/nowhere")
	for name, release := range map[string]string{"none": "version: 9.0.0", "slow": "channel: slow"} {
		store(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: "+name+"}\nspec: {module: {name: foo, "+release+"}, suspend: true}\n")
	}
	for _, line := range []string{"verify gitrepository/next", "plan foo --from-upstream", "resume none slow --plan --yes --from-upstream --system-namespace " + namespace} {
		got := run(t, env.Kubeconfig, append(strings.Fields(line), "-n", namespace)...)
		if got.code != 2 || !strings.Contains(got.told, "/nowhere") || strings.HasPrefix(line, "resume") && !strings.Contains(got.told, "plan for "+namespace+"/slow: ") {
			t.Errorf("%s ended with %d: %s", line, got.code, got.told)
		}
	}
}
