package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/testenv"
)

// TestGetWatches: a line for each object whose line changes, below the columns of the table.
func TestGetWatches(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	namespace := env.NewNamespace(t)
	app := played(t, namespace, repository("app", ""))
	played(t, namespace, repository("other", ""))
	waits := played(t, namespace, strings.Replace(repository("waits", ""), "status: 'True'", "status: Unknown", 1))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, wait := beginShown(ctx, env.Kubeconfig, "get", "gitrepo", "app", "newcomer", "-n", namespace, "-w")
	shows := func(text string) {
		t.Helper()
		testenv.Eventually(t, text+" is shown", func(context.Context) (bool, string) { return strings.Contains(out(), text), out() })
	}
	if got := wait(); got.code != 2 || !strings.Contains(got.told, `"newcomer"`) {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	out, wait = beginShown(ctx, env.Kubeconfig, "get", "gitrepo", "-n", namespace, "-w", "--state", "Ready,Failed", "-l", "in="+namespace)
	shows("other")
	app.patch("metadata: {annotations: {a: b}}")
	app.patch("status: {conditions: [" + app.ready("False", "GitOperationFailed", "no route") + "]}")
	shows("no route")
	// What is in none of the states that are asked for is not shown, however often it changes.
	for _, message := range []string{"never one", "never two"} {
		waits.patch("status: {conditions: [" + waits.ready("Unknown", "Progressing", message) + "]}")
	}
	app.patch("status: {conditions: [" + app.ready("Unknown", "Progressing", "on its way") + "]}")
	shows("on its way")
	app.remove()
	shows("Gone")
	store(t, namespace, repository("late", ""))
	shows("late")
	stop()
	got := wait()
	const revision = "main@sha1:111111111111"
	want := []string{
		"NAME REVISION STATE SINCE MESSAGE", "app " + revision + " Ready AGO stored", "other " + revision + " Ready AGO stored",
		"app " + revision + " Failed AGO GitOperationFailed: no route", "app " + revision + " Progressing AGO on its way",
		"app " + revision + " Gone AGO", "late " + revision + " Ready AGO stored",
	}
	if diff := cmp.Diff(want, squeezed(got.out)); diff != "" || got.code != 130 {
		t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
	}
}

// TestGetWatchesOneKind: as the lines of a table have its columns.
func TestGetWatchesOneKind(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"get", "all", "-w"}, {"get", "-w", "-o", "json"}} {
		if got := run(t, env.Kubeconfig, args...); got.code != 3 || !strings.Contains(got.told, "--watch shows lines of objects of one kind") {
			t.Errorf("%v ended with %d: %s", args, got.code, got.told)
		}
	}
}

// TestColor: it is where it is asked for, moves no column, and nothing but states has it.
func TestColor(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := three(t)
	plain := run(t, env.Kubeconfig, "get", "-n", namespace)
	painted := run(t, env.Kubeconfig, "get", "-n", namespace, "--color", "always")
	for _, want := range []string{"\x1b[32m✔ Ready\x1b[0m  ", "\x1b[33m‖ Held\x1b[0m   ", "\x1b[31m✗ Failed\x1b[0m "} {
		if !strings.Contains(painted.out, want) {
			t.Errorf("%q is missing in %q", want, painted.out)
		}
	}
	bare := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(painted.out)
	if diff := cmp.Diff(plain.out, bare); diff != "" || strings.Contains(plain.out, "\x1b") {
		t.Errorf("-plain +painted:\n%s", diff)
	}
	if got := run(t, env.Kubeconfig, "describe", "held", "-n", namespace, "--color", "always"); !strings.Contains(got.out, "state        \x1b[33m‖ Held\x1b[0m\n") {
		t.Errorf("got %q", got.out)
	}
	if got := run(t, env.Kubeconfig, "get", "--color", "blue"); got.code != 3 || !strings.Contains(got.told, "--color blue is none") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}
