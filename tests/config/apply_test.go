package config_test

import (
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/tests/config"
	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

// TestAPIServerAcceptsConfig sends everything to the real API server as kubectl apply --server-side
// --dry-run=server does. Only the namespace is really made: the API server wants it to be there for the rest.
func TestAPIServerAcceptsConfig(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../../config/default", "../../config/sources", "../../config/samples", "../../config/ui"} {
		objects, err := config.Build(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) == 0 {
			t.Fatalf("%s builds to nothing", path)
		}
		for _, obj := range objects {
			if obj.GetNamespace() == "" {
				obj.SetNamespace(namespaceFor(t, obj))
			}
			options := []client.ApplyOption{client.FieldOwner("test"), client.ForceOwnership}
			if obj.GetKind() != "Namespace" {
				options = append(options, client.DryRunAll)
			}
			if err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), options...); err != nil {
				t.Errorf("%s: %s %s: %v", path, obj.GetKind(), obj.GetName(), err)
			}
		}
	}
}

// namespaceFor is the namespace that kubectl would take for an object without one.
func namespaceFor(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	namespaced, err := env.Client.IsObjectNamespaced(obj)
	if err != nil {
		t.Fatal(err)
	}
	if !namespaced {
		return ""
	}
	return "default"
}

// TestPodSecurityAdmitsThePods makes a pod from each Deployment's template in a namespace that enforces the restricted profile: the
// API server's own admission decides.
func TestPodSecurityAdmitsThePods(t *testing.T) {
	t.Parallel()
	namespace := testenv.Namespace("pod-security")
	namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if err := env.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../config/default", "../../config/ui"} {
		objects, err := config.Build(path)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Deployment" })
		if at < 0 {
			t.Fatalf("%s has no Deployment", path)
		}
		template, _, err := unstructured.NestedMap(objects[at].Object, "spec", "template", "spec")
		if err != nil {
			t.Fatal(err)
		}
		delete(template, "serviceAccountName")
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": "pod", "namespace": namespace.Name},
			"spec":     template,
		}}
		if err := env.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("the pod of %s is refused: %v", path, err)
		}
	}
}
