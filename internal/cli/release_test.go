package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/upstream/registry"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
    - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// pushedTo pushes files, and gives what the command printed.
func pushedTo(t *testing.T, site *registry.Fixture, tag string, files map[string]string) string {
	t.Helper()
	done := typed(t, "push", filepath.Join(commit(t, files), "deploy"), site.URL("modules/foo")+":"+tag, "--insecure-registry", "--move-tag")
	if done.code != 0 {
		t.Fatal(done.told)
	}
	return strings.TrimSpace(done.out)
}

// TestRelease: what was pushed becomes templates, which say what of it is the users'.
func TestRelease(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	site := registry.ForTest(t, registry.Options{})
	at := pushedTo(t, site, "2.0.0", map[string]string{
		"crd.yaml": definition, "app/kustomization.yaml": "resources: [app.yaml]\nnamePrefix: a-\n",
		"app/app.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: foo}}\n",
	})
	repository, digest, _ := strings.Cut(at, "@")
	template := func(name, channel string) string {
		return "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata:\n  name: foo-" + name + "\n  namespace: sluice-system\n" +
			"spec:\n  artifact:\n    oci:\n      digest: " + digest + "\n      insecure: true\n      repository: oci://" + repository + "\n" + channel +
			"  managedResources:\n  - group: example.com\n    kind: Widget\n    version: v1\n  moduleName: foo\n  version: 2.0.0\n"
	}
	got := typed(t, "release", "foo", "2.0.0", at, "--channel", "regular", "--insecure-registry")
	want := template("2.0.0", "") + "---\n" + template("regular", "  channel: regular\n")
	if diff := cmp.Diff(want, got.out); diff != "" || got.code != 0 || got.told != "Objects in it: 2\n" {
		t.Errorf("ended with %d, %s (-want +got):\n%s", got.code, got.told, diff)
	}
}

// TestReleaseRefuses: what installs nothing, what cannot be built, and what is not pinned.
func TestReleaseRefuses(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	site := registry.ForTest(t, registry.Options{})
	empty := pushedTo(t, site, "1.0.0", map[string]string{"notes.txt": "nothing"})
	broken := pushedTo(t, site, "1.0.1", map[string]string{"a.yaml": "kind: [\n"})
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"Empty":   {[]string{"foo", "1.0.0", empty}, 2, "nothing to apply"},
		"Broken":  {[]string{"foo", "1.0.0", broken}, 2, "a.yaml"},
		"Missing": {[]string{"foo", "1.0.0", strings.Split(empty, "@")[0] + "@sha256:" + strings.Repeat("0", 64)}, 2, "not found"},
		"Tag":     {[]string{"foo", "1.0.0", strings.Split(empty, "@")[0] + ":1.0.0"}, 3, "by its digest"},
		"Version": {[]string{"foo", "v1", empty}, 3, "not a semantic version"},
		"Few":     {[]string{"foo", "1.0.0"}, 3, "MODULE VERSION"},
	} {
		t.Run(name, func(t *testing.T) {
			got := typed(t, append([]string{"release", "--insecure-registry"}, test.args...)...)
			if got.code != test.code || got.out != "" || !strings.Contains(got.told, test.says) {
				t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
			}
		})
	}
}

// TestReleaseApplies: under the person's name, with the older version deprecated, and only if the catalogue agrees.
func TestReleaseApplies(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	site, namespace := registry.ForTest(t, registry.Options{}), env.NewNamespace(t)
	release := func(version, at string, more ...string) answer {
		return typed(t, append([]string{"release", "foo", version, at, "--insecure-registry", "--kubeconfig", env.Kubeconfig, "-n", namespace}, more...)...)
	}
	config := func(value string) map[string]string {
		return map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: foo}, data: {is: " + value + "}}\n"}
	}
	first, second := pushedTo(t, site, "1.0.0", config("one")), pushedTo(t, site, "2.0.0", config("two"))
	if got := release("1.0.0", first, "--channel", "regular", "--apply"); got.code != 0 || !strings.Contains(got.out, "/foo-regular applied") {
		t.Fatalf("ended with %d: %s%s", got.code, got.out, got.told)
	}
	if got := release("2.0.0", second, "--channel", "regular", "--deprecate", "1.0.0", "--apply"); got.code != 0 {
		t.Fatalf("ended with %d: %s%s", got.code, got.out, got.told)
	}
	var all modulesv1.ModuleTemplateList
	if err := env.Client.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, one := range all.Items {
		states[one.Name] = one.Spec.Version
		if one.Spec.Support != nil {
			states[one.Name] += " " + string(one.Spec.Support.State) + " by " + one.Spec.Support.ReplacedBy
		}
		if manager := one.ManagedFields[0].Manager; manager != "sluice-cli" {
			t.Errorf("%s belongs to %s", one.Name, manager)
		}
	}
	if diff := cmp.Diff(map[string]string{"foo-1.0.0": "1.0.0 Deprecated by 2.0.0", "foo-2.0.0": "2.0.0", "foo-regular": "2.0.0"}, states); diff != "" {
		t.Error(diff)
	}
	withdrawn := "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-0.9.0}\nspec: {moduleName: foo, version: 0.9.0, support: {state: Withdrawn, message: It loses data}, artifact: {oci: {repository: 'oci://example.com/foo', digest: 'sha256:" + strings.Repeat("a", 64) + "'}}}\n"
	store(t, namespace, withdrawn)
	if got := release("2.0.0", second, "--deprecate", "0.9.0"); !strings.Contains(got.out, "  support:\n    message: It loses data\n    replacedBy: 2.0.0\n    state: Withdrawn\n") {
		t.Errorf("what is withdrawn stays so, and its message too: %s%s", got.out, got.told)
	}
	store(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: other}\nspec: {moduleName: foo, version: 3.0.0, channel: fast, artifact: {oci: {repository: 'oci://example.com/foo', digest: 'sha256:"+strings.Repeat("a", 64)+"'}}}\n")
	if got := release("3.0.0", second, "--apply"); got.code != 2 || !strings.Contains(got.told, "ModuleTemplate other has version 3.0.0 with other content") {
		t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
	}
	if got := release("2.1.0", second, "--channel", "fast", "--apply"); got.code != 2 || !strings.Contains(got.told, "ModuleTemplate other claims channel fast too") {
		t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
	}
	if got := release("2.1.0", second, "--apply", "--kubeconfig", reader(t, namespace)); got.code != 2 || !strings.HasSuffix(got.told, "ask for the ClusterRole sluice-catalogue\n") {
		t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
	}
	if got := release("2.1.0", second, "--deprecate", "0.1.0"); got.code != 2 || !strings.Contains(got.told, "no template in namespace") {
		t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
	}
}
