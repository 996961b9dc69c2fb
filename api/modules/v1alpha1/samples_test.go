package v1alpha1_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/config"
	"sluice.dev/sluice/tests/testenv"
)

// TestSamplesAreAccepted: the API server takes every sample as it stands, and there is one of each kind that people
// write, for each way of choosing a release.
func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	objects, err := config.Build("../../../config/samples")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, object := range objects {
		if object.GroupVersionKind().Group != modulesv1.GroupVersion.Group {
			continue
		}
		kinds[object.GetKind()]++
		object.SetNamespace("default")
		if err := env.Client.Create(t.Context(), object, client.DryRunAll, testenv.Strict()); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	for kind, want := range map[string]int{
		modulesv1.ModuleTemplateKind: 4, modulesv1.ModuleKind: 1, modulesv1.ModuleInstallationKind: 5,
	} {
		if kinds[kind] < want {
			t.Errorf("want %d samples of kind %s at least, got %d", want, kind, kinds[kind])
		}
	}
}
