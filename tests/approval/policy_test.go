package approval_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/config"
	"sluice.dev/sluice/tests/testenv"
)

// TestPoliciesAreWhole: they fail closed, they deny, and the API server's own check of their types has nothing to say.
func TestPoliciesAreWhole(t *testing.T) {
	t.Parallel()
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	objects, err := config.Build(filepath.Join(testenv.Root(), "config", "approval"))
	if err != nil || len(objects) != 8 {
		t.Fatalf("config/approval has %d objects: %v", len(objects), err)
	}
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		name := object.GetName()
		policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
		if err := env.Client.Get(t.Context(), types.NamespacedName{Name: name}, binding); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]admissionv1.ValidationAction{admissionv1.Deny}, binding.Spec.ValidationActions); diff != "" {
			t.Errorf("%s: actions (-want +got):\n%s", name, diff)
		}
		if binding.Spec.MatchResources != nil || binding.Spec.PolicyName != name {
			t.Errorf("%s is bound in part, or to %s", name, binding.Spec.PolicyName)
		}
		testenv.Eventually(t, "the types are checked", func(ctx context.Context) (bool, string) {
			err := env.Client.Get(ctx, types.NamespacedName{Name: name}, policy)
			return err == nil && policy.Status.TypeChecking != nil, "not yet"
		})
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
		}
		if fail := policy.Spec.FailurePolicy; fail == nil || *fail != admissionv1.Fail || len(policy.Spec.MatchConditions) != 0 {
			t.Errorf("%s does not fail closed, or lets something pass unseen", name)
		}
	}
}

// TestEveryFieldOfAVariantIsTried: a field that is added is looked at by the policy, or left out on purpose.
func TestEveryFieldOfAVariantIsTried(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "crd", "bases", "packages.sluice.dev_packagevariants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	want, got := slices.Sorted(maps.Keys(spec)), slices.Sorted(maps.Keys(edits()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of %s (-in the schema +tried):\n%s", packagesv1.PackageVariantKind, diff)
	}
}
