package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestTreeWatches: a line for each object whose line changes, below the tree. However much changes, what is shown is read once, and
// followed; no Secret is.
func TestTreeWatches(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := rolling(t)
	user := "gardener-of-" + namespace
	kubeconfig, err := env.KubeconfigAs(user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	out, wait := beginShown(t.Context(), kubeconfig, "tree", "foo", "-n", namespace, "-w")
	shows := func(text string) {
		t.Helper()
		testenv.Eventually(t, text+" is shown", func(context.Context) (bool, string) { return strings.Contains(out(), text), out() })
	}
	shows("No such image")
	drawn := out()
	object{t, pods, namespace, "foo-1-x"}.patch("status: {containerStatuses: [{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {waiting: {reason: ErrImagePull, message: Nobody answers}}}]}")
	shows("Nobody answers")
	app := object{t, repositories, namespace, "app"}
	app.patch("metadata: {annotations: {a: b}}")
	app.patch("status: {conditions: [" + app.ready("False", "GitOperationFailed", "no route") + "]}")
	shows("no route")
	member(t, namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}")
	shows("/d  ✔ Ready")
	added := object{t, modulesv1.GroupVersion.WithKind("ConfigMap"), namespace, "d"}
	added.kind.Group, added.kind.Version = "", "v1"
	added.remove()
	shows("/d  Gone")
	object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}.remove()
	got := wait()
	want := []string{
		"Pod NS/foo-1-x ✗ Failed ErrImagePull: Nobody answers",
		"GitRepository NS/app ✗ Failed revision main@sha1:111111111111 GitOperationFailed: no route",
		"ConfigMap NS/d ✔ Ready",
		"ConfigMap ×1 not found: deleted, or without the label of the installation", "ConfigMap NS/d Gone",
	}
	if diff := cmp.Diff(want, squeezed(strings.ReplaceAll(strings.TrimPrefix(got.out, drawn), namespace, "NS"))); diff != "" || got.code != 2 || !strings.Contains(got.told, "not found") {
		t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
	}
	requests, err := env.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, r := range requests {
		// Which kinds there are is kept on disk, and once the installation is gone, similar ones are looked for.
		if r.Verb != "watch" && r.Object.Resource != "" && r.Object.Resource != "moduleinstallations" {
			asked[r.Verb+" "+r.Object.Resource]++
		}
	}
	once := map[string]int{
		"list moduletemplates": 1, "list gitrepositories": 1, "list configmaps": 1, "list secrets": 1, "list deployments": 1, "list replicasets": 1, "list pods": 1,
	}
	if diff := cmp.Diff(once, asked); diff != "" || strings.Contains(got.out, "canary") {
		t.Errorf("-want +asked for:\n%s", diff)
	}
}

// TestTreeWatchesTrouble: what is well is not shown, but for what comes to be so.
func TestTreeWatchesTrouble(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	namespace := rolling(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, wait := beginShown(ctx, env.Kubeconfig, "tree", "mt/foo-2.0.0", "-n", namespace, "-w", "--problems")
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	played(t, namespace, strings.Replace(repository("other", ""), "status: 'True'", "status: 'False'", 1)) // It is not in the tree.
	testenv.Eventually(t, "it is watched", func(context.Context) (bool, string) {
		foo.patch("status: {conditions: [" + foo.ready("False", "HealthCheckFailed", "it is ill") + "]}")
		return strings.Contains(out(), "it is ill"), out()
	})
	foo.patch("status: {conditions: [" + foo.ready("True", "Installed", "Installed 2.0.0") + "]}")
	ill, well := "ModuleInstallation NS/foo Failed module foo, version 2.0.0 HealthCheckFailed: it is ill", "ModuleInstallation NS/foo Ready module foo, version 2.0.0"
	lines := func(out string) []string { return squeezed(strings.ReplaceAll(out, namespace, "NS")) }
	testenv.Eventually(t, "it is shown to be well", func(context.Context) (bool, string) {
		all := lines(out())
		return all[len(all)-1] == well, out()
	})
	stop()
	got := wait()
	// What led to it is before them, if it was ill when all was listed.
	if last := lines(got.out); !strings.HasSuffix(last[len(last)-2], ill) || strings.Contains(got.out, "other") || got.code != 130 {
		t.Errorf("ended with %d, %s:\n%s", got.code, got.told, got.out)
	}
	if got := run(t, env.Kubeconfig, "tree", "foo", "-n", namespace, "-w", "-o", "json"); got.code != 3 || !strings.Contains(got.told, "--watch shows lines") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}
