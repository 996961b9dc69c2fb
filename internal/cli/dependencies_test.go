package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestDependencies: what an installation depends on is told with its state, where somebody has read that, and drawn with dashes.
func TestDependencies(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := env.NewNamespace(t)
	runs := fmt.Sprintf("{current: {version: 2.0.0, template: foo-2.0.0, namespace: %s}, conditions: ", namespace)
	store(t, namespace, template("foo-2.0.0", "2.0.0", ""))
	store(t, namespace, installation("db", "", runs+condition("False", "HealthCheckFailed", "it is down")+"}"))
	const ours = "{apiVersion: modules.sluice.dev/v1alpha1, kind: ModuleInstallation, name: "
	store(t, namespace, installation("foo", ", dependsOn: ["+ours+"db}, {apiVersion: apps/v1, kind: Deployment, name: front}, "+ours+"gone}]", runs+condition("True", "Installed", "well")+"}"))
	got := run(t, env.Kubeconfig, "tree", "foo", "-n", namespace)
	line := strings.Join(strings.Fields(got.out), " ")
	if want := strings.ReplaceAll("depends on ModuleInstallation NS/db (Failed) depends on Deployment front depends on ModuleInstallation NS/gone (not found)", "NS", namespace); got.code != 0 || !strings.Contains(line, want) {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	var told struct {
		Root struct {
			Under []struct {
				DependsOn []struct{ Kind, Namespace, Name, State string }
			}
		}
	}
	asked := run(t, env.Kubeconfig, "tree", "foo", "-n", namespace, "-o", "json")
	if err := json.Unmarshal([]byte(asked.out), &told); err != nil || len(told.Root.Under) != 1 || len(told.Root.Under[0].DependsOn) != 3 || told.Root.Under[0].DependsOn[0].State != "Failed" {
		t.Errorf("ended with %d: %s", asked.code, asked.out)
	}
	b := opened(t, env.Kubeconfig, "-n", namespace)
	for path, want := range map[string]int{
		"o/" + installations + "/" + namespace + "/foo":                    3,
		"o/" + installations + "/" + namespace + "/foo/graph":              3,
		"o/modules.sluice.dev/ModuleTemplate/" + namespace + "/foo-2.0.0":  3,
		"o/" + installations + "/" + namespace + "/db/graph":               0,
		"o/" + installations + "/" + namespace + "/foo/graph?as=list&x=no": 0,
	} {
		if page := b.page(path); strings.Count(page, `class="edge depends"`) != want || strings.Contains(page, "style=") {
			t.Errorf("%s has not %d dashed edges: %s", path, want, page)
		}
	}
	for _, path := range []string{"o/" + installations + "/" + namespace + "/foo/graph?as=list", "o/modules.sluice.dev/ModuleTemplate/" + namespace + "/foo-2.0.0/graph?as=list"} {
		page := b.page(path)
		if !strings.Contains(page, `depends on <a href="`+b.base+"o/"+installations+"/"+namespace+`/db">`) || !strings.Contains(page, "depends on Deployment front") {
			t.Errorf("%s: %s", path, page)
		}
	}
}

// TestDependenciesThatMayNotBeRead: they are named, and so is the role.
func TestDependenciesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, installation("foo", ", dependsOn: [{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: app}]", "{}"))
	got := run(t, reader(t, namespace), "tree", "foo", "-n", namespace)
	if got.code != 2 || !strings.Contains(got.out, "depends on GitRepository "+namespace+"/app") || !strings.Contains(got.told, "ask for the ClusterRole sluice-view") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}
