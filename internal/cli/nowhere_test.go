package cli_test

import (
	"strings"
	"testing"
)

// TestNoNamespaceIsNotNone: of a namespace that is not there nothing is said to be none, and nobody goes on after a misspelt one.
func TestNoNamespaceIsNotNone(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"get", "get all -o json", "get gitrepo -w", "export", "wait sources --all", "suspend --all", "reconcile gitrepo -l a=b --no-wait"} {
		got := run(t, env.Kubeconfig, append(strings.Fields(args), "-n", "nowhere")...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.told, `look into namespace "nowhere": there is no such namespace`) {
			t.Errorf("%s ended with %d: %s%s", args, got.code, got.out, got.told)
		}
	}
}

// TestNoneOfThese: that none is in the state, or has the labels, is not said of all.
func TestNoneOfThese(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, repository("app", ""))
	got := run(t, env.Kubeconfig, "get", "gitrepo", "-n", namespace, "--state", "Failed,Held", "-l", "!a")
	if want := "There are none in state Failed or Held with these labels in namespace " + namespace + ".\n"; got.told != want || got.code != 0 {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}
