package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"sluice.dev/sluice/tests/testenv"
)

// TestInstallExportsTheManifests: as kustomize builds them from the folder, with the namespace and the image that are asked for.
func TestInstallExportsTheManifests(t *testing.T) {
	t.Parallel()
	built := func(folder string) string {
		options := krusty.MakeDefaultOptions()
		options.Reorder = krusty.ReorderOptionUnspecified
		made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), "../../config/"+folder)
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for flags, want := range map[string]string{
		"--controllers=all": built("default"), "--controllers=source": built("sources"), "--with-ui": built("default") + "---\n" + built("ui"),
	} {
		if got := typed(t, "install", "--export", flags); got.code != 0 || got.out != want {
			t.Errorf("%s ended with %d, %s: %s", flags, got.code, got.told, cmp.Diff(want, got.out))
		}
	}
	const digest = "sha256:5f21c0d94e115f21c0d94e115f21c0d94e115f21c0d94e115f21c0d94e115f21"
	for image, want := range map[string]string{
		"registry.example.com:5000/a/sluice:1.0.0": "image: registry.example.com:5000/a/sluice:1.0.0\n", "registry.example.com/sluice@" + digest: "image: registry.example.com/sluice@" + digest + "\n",
	} {
		got := typed(t, "install", "--export", "--with-ui", "--image", image, "--system-namespace", "elsewhere")
		if got.code != 0 || !strings.Contains(got.out, want) || !strings.Contains(got.out, "namespace: elsewhere\n") || strings.Contains(got.out, "sluice-system") || strings.Contains(got.out, "image: sluice:") {
			t.Errorf("%s ended with %d, %s", image, got.code, got.told)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"Image":       {nil, "no image is named"},
		"Tag":         {[]string{"--image", "registry.example.com/sluice"}, "write NAME:TAG"},
		"Controllers": {[]string{"--image", "a:b", "--controllers", "packages"}, "it is all, or source"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, env.Kubeconfig, append([]string{"install"}, tc.args...)...); got.code != 3 || !strings.Contains(got.told, tc.want) {
				t.Errorf("ended with %d: %s", got.code, got.told)
			}
		})
	}
}

// TestInstallAndCheck: what is missing is named before, all of it is there after, and installing once more changes nothing.
func TestInstallAndCheck(t *testing.T) { //nolint:paralleltest // The Deployment would be found by other tests.
	t.Setenv("LC_ALL", "C")
	namespace := env.NewNamespace(t)
	args := []string{"install", "--controllers", "source", "--system-namespace", namespace, "--image", "registry.example.com/sluice:1.0.0"}
	checked := func() answer {
		return run(t, env.Kubeconfig, "check", "--controllers", "source", "--system-namespace", namespace)
	}
	says := func(got answer, code int, lines ...string) {
		t.Helper()
		all := strings.Join(squeezed(got.out), "\n")
		for _, line := range lines {
			if !strings.Contains(all, line) {
				t.Errorf("%q is not in %s", line, all)
			}
		}
		if got.code != code {
			t.Errorf("ended with %d, %s", got.code, got.told)
		}
	}
	says(run(t, env.Kubeconfig, "check", "--pre", "--controllers", "source"), 0, "ok Kubernetes v1.", "ok Rights you may make all that is installed", "ok Flux beside")
	says(checked(), 1, "ok CustomResourceDefinitions ", "FAULT ClusterRoles missing: sluice-", "sluice install applies it anew", "FAULT Controllers no Deployment has the label")
	if got := run(t, env.Kubeconfig, append(args, "--no-wait")...); got.code != 0 || !strings.Contains(got.out, "Deployment "+namespace+"/sluice\n") {
		t.Fatalf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sluice"}}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = env.Client.Delete(ctx, deployment)
		var roles rbacv1.ClusterRoleList
		_ = env.Client.List(ctx, &roles)
		for _, role := range roles.Items {
			if strings.HasPrefix(role.Name, "sluice-") {
				_ = env.Client.Delete(ctx, &role) // Whoever runs the test again finds none.
			}
		}
	})
	sayGolden(t, "install.table", namespace, "install --controllers source --system-namespace NS --image registry.example.com/sluice:1.0.0 --no-wait", "table", 0)
	says(checked(), 1, "ok CustomResourceDefinitions ", "ok ClusterRoles ", "FAULT Controllers Deployment "+namespace+"/sluice: 0 of 1 ready, registry.example.com/sluice:1.0.0", "ok Service "+namespace+"/source-controller")
	if got := run(t, env.Kubeconfig, append(args, "--timeout", "1ms")...); got.code != 4 || !strings.Contains(got.told, "sluice check says what is missing") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	out, wait := beginShown(t.Context(), env.Kubeconfig, args...)
	testenv.Eventually(t, "it is applied anew", func(context.Context) (bool, string) {
		return strings.Contains(out(), "Deployment "+namespace+"/sluice\n"), out()
	})
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Generation != 1 {
		t.Errorf("applying it anew has changed it: %+v", deployment.ObjectMeta)
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := env.Client.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if got := wait(); got.code != 0 || !strings.Contains(got.out, "Deployment "+namespace+"/sluice  1 of 1 ready\n") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	says(checked(), 0, "ok Controllers Deployment "+namespace+"/sluice: 1 of 1 ready")
	for _, output := range []string{"table", "json"} {
		sayGolden(t, "check."+output, namespace, "check --controllers source --system-namespace NS", output, 0)
	}

	// Somebody has taken a right from a role.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sluice-source"}}
	if err := env.Client.Patch(t.Context(), role, client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/rules/0"}]`)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	says(checked(), 1, "FAULT ClusterRoles of another version than this program: sluice-source")

	// Somebody else has a field by now, and somebody without rights is told so.
	other := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31}}}}`))
	if err := env.Client.Patch(t.Context(), deployment, other, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, env.Kubeconfig, append(args, "--no-wait")...); got.code != 2 || !strings.Contains(got.told, "somebody") || !strings.Contains(got.told, "--force-conflicts takes the fields over") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	got := run(t, env.Kubeconfig, append(args, "--no-wait", "--force-conflicts", "--with-ui")...)
	if got.code != 0 || !strings.Contains(got.out, "Deployment "+namespace+"/sluice-ui\n") || !strings.Contains(got.told, "once Secret "+namespace+"/sluice-ui-tls has its certificate") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	// The web UI's name is patched there, and stays what it is until it is taken over.
	ui := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sluice-ui"}}
	named := client.RawPatch("application/json-patch+json", []byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/args/2", "value": "--host=sluice.example.com"}]`))
	if err := env.Client.Patch(t.Context(), ui, named, client.FieldOwner("kubectl-patch")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ image, force, host string }{
		{"registry.example.com/sluice:1.0.1", "--force-conflicts=false", "--host=sluice.example.com"}, {"registry.example.com/sluice:1.0.2", "--force-conflicts", "--host=localhost:8443"},
	} {
		got := run(t, env.Kubeconfig, append(args, "--no-wait", "--with-ui", "--image", tc.image, tc.force)...)
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(ui), ui); err != nil {
			t.Fatal(err)
		}
		if made := ui.Spec.Template.Spec.Containers[0]; got.code != 0 || made.Image != tc.image || made.Args[2] != tc.host {
			t.Errorf("ended with %d, %s: %s, %s", got.code, got.told, made.Image, made.Args)
		}
	}
	says(run(t, reader(t, namespace), "check", "--pre", "--controllers", "source"), 1, "FAULT Rights you may not create ", "? Flux beside forbidden")
}

// TestCheckTellsOtherVersions: a kind whose fields are not those that this program has.
func TestCheckTellsOtherVersions(t *testing.T) {
	t.Parallel()
	got := run(t, through(t, answerWith(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io", func(crd *unstructured.Unstructured) {
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		first, _ := versions[0].(map[string]any)
		unstructured.RemoveNestedField(first, "schema", "openAPIV3Schema", "properties", "spec", "properties", "interval")
		_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
	})), "check", "--controllers", "source")
	if got.code == 0 || !strings.Contains(got.out, "of another version than this program: gitrepositories.source.toolkit.fluxcd.io") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}
