package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine"
)

// TestTrace: from any object to the source, and who owns a field of it.
func TestTrace(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := rolling(t)
	deployment := object{t, replicaSets.GroupVersion().WithKind("Deployment"), namespace, "foo"}
	patch := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"foo","namespace":"`+namespace+`"},"spec":{"minReadySeconds":5}}`))
	if err := env.Client.Patch(t.Context(), deployment.get(), patch, client.FieldOwner(engine.Manager("u")), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	patch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
	if err := env.Client.Patch(t.Context(), deployment.get(), patch, client.FieldOwner("by-hand")); err != nil {
		t.Fatal(err)
	}
	store(t, namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: forged, labels: {"+engine.Label+": applyset-x, "+engine.InstallationLabel+": bar, "+engine.NamespaceLabel+": "+namespace+"}}")
	store(t, namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alone, labels: {app.kubernetes.io/managed-by: Helm, app.kubernetes.io/instance: shop}}")
	store(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: Inventory\nmetadata: {name: foo}\ndata: {installationUID: u, phase: Installed, members: [{g: apps, v: v1, k: Deployment, ns: "+namespace+", nm: foo}]}")
	way := []string{
		"ModuleInstallation NS/foo ✔ Ready module foo, version 2.0.0",
		"ModuleTemplate NS/foo-2.0.0 ✔ Ready module foo, version 2.0.0, channel fast",
		"GitRepository NS/app ✔ Ready revision main@sha1:111111111111",
		"https://example.com/app",
	}
	after := func(lines ...string) []string { return append(lines, way...) }
	agree := "Deployment NS/foo label and Inventory agree"
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"Member": {[]string{"deploy/foo"}, after(agree)},
		"Field":  {[]string{"deployment.apps", "foo", "--field", "spec.replicas"}, append(after(agree), "spec.replicas = 3 by by-hand (Update), AGO ago; the release does not set it")},
		"Set":    {[]string{"deployments/foo", "--field", "spec.minReadySeconds"}, append(after(agree), "spec.minReadySeconds = 5 by "+engine.Manager("u")+" (Apply), AGO ago; the release sets it")},
		"Item": {
			[]string{"deployments/foo", "--field", "spec.template.spec.containers[name=c].image"},
			append(after(agree), `spec.template.spec.containers[name=c].image = "pause" by cli.test (Update), AGO ago; the release does not set it`),
		},
		"Missing": {[]string{"deployments/foo", "--field", "spec.nothing[3]"}, append(after(agree), "spec.nothing[3] is not there; nobody is on record as its owner")},
		"Pod":     {[]string{"pod", "foo-1-x"}, after("Pod NS/foo-1-x owned by ReplicaSet foo-1", "ReplicaSet NS/foo-1 owned by Deployment foo", agree)},
		"Secret": {[]string{"secret/s", "--field", "data.key"}, append(after("Secret NS/s by its label alone: the Inventory does not list it, so somebody else has put the label there"),
			"data.key (hidden, as it is a Secret's) by cli.test (Update), AGO ago; the release does not set it")},
		"Forged": {[]string{"cm/forged"}, []string{"ConfigMap NS/forged its label names an installation NS/bar that is not there"}},
		"Alone":  {[]string{"cm/alone"}, []string{"ConfigMap NS/alone no installation has it, but the Helm release shop"}},
		"Ours":   {[]string{"mt/foo-2.0.0"}, way[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, env.Kubeconfig, append([]string{"trace", "-n", namespace}, tc.args...)...)
			lines := squeezed(strings.ReplaceAll(got.out, namespace, "NS"))
			for i := range lines {
				lines[i] = seconds.ReplaceAllString(lines[i], ", AGO ago")
			}
			if diff := cmp.Diff(tc.want, lines); diff != "" || got.code != 0 {
				t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
			}
		})
	}
}

// TestTraceRefuses: what is no object and no path.
func TestTraceRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"None":     {nil, 3, "one object has to be named"},
		"Kindless": {[]string{"foo"}, 3, "one object has to be named"},
		"Kind":     {[]string{"frob/foo"}, 2, "find the kind frob: the API server serves none of that name"},
		"Missing":  {[]string{"deploy/foo"}, 2, "get Deployment default/foo"},
		"Open":     {[]string{"deploy/foo", "--field", "spec.a["}, 3, "is no path"},
		"Empty":    {[]string{"deploy/foo", "--field", "spec..a"}, 3, "is no path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{"trace", "-n", metav1.NamespaceDefault}, tc.args...)...)
			if got.code != tc.code || !strings.Contains(got.told, tc.want) || got.out != "" {
				t.Errorf("ended with %d: %s", got.code, got.told)
			}
		})
	}
}

// seconds is how long ago something was that a test has just done.
var seconds = regexp.MustCompile(`, [0-9ms]+ ago`)
