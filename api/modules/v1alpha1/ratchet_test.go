package v1alpha1_test

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestTightenedRulesLeaveOldObjectsEditable: an object from before a rule may break it. It can be edited elsewhere, and
// it can be mended; it cannot be broken in another way.
func TestTightenedRulesLeaveOldObjectsEditable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		plural, kind                  string
		old, elsewhere, mended, worse string
	}{
		"Version": {
			"moduletemplates", modulesv1.ModuleTemplateKind,
			"spec: {moduleName: a, version: v1.0.0, ARTIFACT1}",
			"spec: {moduleName: a, version: v1.0.0, ARTIFACT1, support: {state: Withdrawn}}",
			"spec: {moduleName: a, version: 1.0.1, ARTIFACT2, support: {state: Withdrawn}}",
			"spec: {moduleName: a, version: v2.0.0, ARTIFACT2}",
		},
		"Overflow": {
			"moduletemplates", modulesv1.ModuleTemplateKind,
			"spec: {moduleName: a, version: 99999999999999999999.0.0, ARTIFACT1}",
			"spec: {moduleName: a, version: 99999999999999999999.0.0, ARTIFACT1, support: {message: x}}",
			"spec: {moduleName: a, version: 1.0.0, ARTIFACT2}",
			"spec: {moduleName: a, version: 99999999999999999998.0.0, ARTIFACT2}",
		},
		"ModuleName": {
			"moduletemplates", modulesv1.ModuleTemplateKind,
			"spec: {moduleName: Redis.IO, version: 1.0.0, ARTIFACT1}",
			"spec: {moduleName: Redis.IO, version: 2.0.0, ARTIFACT2}",
			"spec: {moduleName: Redis.IO, version: 3.0.0, ARTIFACT1}",
			"spec: {moduleName: Redis.OI, version: 2.0.0, ARTIFACT2}",
		},
		"Group": {
			"moduletemplates", modulesv1.ModuleTemplateKind,
			"spec: {moduleName: a, version: 1.0.0, ARTIFACT1, managedResources: [{group: ../v1/namespaces/x, version: v1, kind: B}]}",
			"spec: {moduleName: a, version: 1.0.0, ARTIFACT1, managedResources: [{group: ../v1/namespaces/x, version: v1, kind: B}, {group: c.io, version: v1, kind: D}]}",
			"spec: {moduleName: a, version: 1.0.0, ARTIFACT1, managedResources: [{group: c.io, version: v1, kind: B}]}",
			"spec: {moduleName: a, version: 1.0.0, ARTIFACT1, managedResources: [{group: ../v1/namespaces/y, version: v1, kind: B}]}",
		},
		"Selection": {
			"moduleinstallations", modulesv1.ModuleInstallationKind,
			"spec: {module: {name: a, channel: fast, version: 1.0.0}}",
			"spec: {module: {name: a, channel: fast, version: 1.0.0}, suspend: true}",
			"spec: {module: {name: a, channel: fast}, suspend: true}",
			"spec: {module: {name: a, channel: fast, version: 1.0.0, latest: true}}",
		},
		"Interval": {
			"moduleinstallations", modulesv1.ModuleInstallationKind,
			"spec: {module: {name: a}, interval: 1ms}", "spec: {module: {name: a}, interval: 1ms, force: true}",
			"spec: {module: {name: a}, interval: 1s}", "spec: {module: {name: a}, interval: 2ms}",
		},
		"Channel": {
			"modules", modulesv1.ModuleKind,
			"spec: {channels: [{name: none, version: 1.0.0}]}",
			"spec: {description: x, channels: [{name: none, version: 1.0.0}, {name: fast, version: 1.0.0}]}",
			"spec: {channels: [{name: fast, version: 1.0.0}]}",
			"spec: {channels: [{name: none, version: 1.0.0}, {name: fast, version: 1.x}]}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crds, err := client.New(env.Config, client.Options{Scheme: definitions(t)})
			if err != nil {
				t.Fatal(err)
			}
			crd := loosened(t, tc.plural, strings.ToLower(name)+".example.com")
			if err := crds.Create(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
			object := func(body string) *unstructured.Unstructured {
				made := manifests().Parse(t, tc.kind, body)
				made.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1alpha1", Kind: tc.kind})
				return made
			}
			stored := object(tc.old)
			testenv.Eventually(t, "the old rules are served", func(ctx context.Context) (bool, string) {
				err := env.Client.Create(ctx, stored)
				return err == nil, errorText(err)
			})
			tightened := client.MergeFrom(crd.DeepCopy())
			crd.Spec.Versions[0].Schema = definition(t, tc.plural).Spec.Versions[0].Schema
			if err := crds.Patch(t.Context(), crd, tightened); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, "the new rules are served", func(ctx context.Context) (bool, string) {
				fresh := object(tc.old)
				fresh.SetName("fresh")
				err := env.Client.Create(ctx, fresh, client.DryRunAll)
				return err != nil && strings.Contains(err.Error(), "nvalid"), errorText(err)
			})
			update := func(body string) error {
				edited := object(body)
				edited.SetResourceVersion(stored.GetResourceVersion())
				err := env.Client.Update(t.Context(), edited)
				if err == nil {
					stored = edited
				}
				return err
			}
			if err := update(tc.worse); err == nil {
				t.Error("an old object can be broken in another way")
			}
			if err := update(tc.elsewhere); err != nil {
				t.Errorf("an old object cannot be edited elsewhere: %v", err)
			}
			if err := update(tc.mended); err != nil {
				t.Errorf("an old object cannot be mended: %v", err)
			}
		})
	}
}

// loosened is the definition in a group of its own, without rules on what spec says.
func loosened(t *testing.T, plural, group string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := definition(t, plural)
	crd.Name, crd.Spec.Group = plural+"."+group, group
	crd.Spec.Names.ShortNames, crd.Spec.Names.Categories = nil, nil
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	loosen(&spec)
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	return crd
}

func loosen(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations, s.Pattern, s.MinLength = nil, "", nil
	for name, property := range s.Properties {
		loosen(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		loosen(s.Items.Schema)
	}
}

func definitions(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func errorText(err error) string {
	if err == nil {
		return "accepted"
	}
	return err.Error()
}
