package v1alpha1_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// plurals are the resources of the group.
func plurals() []string {
	return []string{"inventories", "moduleinstallations", "modules", "moduletemplates"}
}

func definition(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../../config/crd/bases/modules.sluice.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func schemaOf(t *testing.T, plural string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return *definition(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits every schema below spec, status and data, except those that are Kubernetes' own.
func walk(path string, schema apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	if strings.HasSuffix(path, ".conditions") || strings.HasSuffix(path, ".namespaceSelector") {
		return
	}
	visit(path, schema)
	for name, property := range schema.Properties {
		if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		walk(path+"."+name, property, visit)
	}
	if schema.Items != nil {
		walk(path+"[]", *schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil {
		walk(path+"{}", *schema.AdditionalProperties.Schema, visit)
	}
}

// TestEverythingIsBounded: no field of ours takes any amount.
func TestEverythingIsBounded(t *testing.T) {
	t.Parallel()
	// Values of maps have no place for a bound in Go; their number has one, and so has the whole object. The time that
	// a reconcile was asked for is Flux's type.
	unbounded := []string{".status.lastHandledReconcileAt"}
	for _, plural := range plurals() {
		fields := 0
		walk("", schemaOf(t, plural), func(path string, schema apiextensionsv1.JSONSchemaProps) {
			fields++
			if strings.HasSuffix(path, "{}") || slices.Contains(unbounded, path) {
				return
			}
			switch schema.Type {
			case "string":
				if schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format != "date-time" {
					t.Errorf("%s%s: a string without maxLength or enum", plural, path)
				}
			case "array":
				if schema.MaxItems == nil || schema.XListType == nil {
					t.Errorf("%s%s: a list without maxItems or list type", plural, path)
				}
			case "integer":
				if schema.Minimum == nil || schema.Maximum == nil {
					t.Errorf("%s%s: a number without bounds", plural, path)
				}
			case "object":
				if schema.AdditionalProperties != nil && schema.MaxProperties == nil {
					t.Errorf("%s%s: a map without maxProperties", plural, path)
				}
			}
		})
		if fields < 15 {
			t.Errorf("%s: only %d fields were seen", plural, fields)
		}
	}
}

// TestConditionsAreAMap: server-side apply merges them by type.
func TestConditionsAreAMap(t *testing.T) {
	t.Parallel()
	for _, plural := range plurals() {
		conditions, found := schemaOf(t, plural).Properties["status"].Properties["conditions"]
		if !found {
			if plural != "inventories" {
				t.Errorf("%s has no conditions", plural)
			}
			continue
		}
		if conditions.XListType == nil || *conditions.XListType != "map" {
			t.Errorf("%s: conditions are no map", plural)
		}
		if diff := cmp.Diff([]string{"type"}, conditions.XListMapKeys); diff != "" {
			t.Errorf("%s: key of conditions (-want +got):\n%s", plural, diff)
		}
	}
}

// TestFieldsOfLaterAreAbsent: what does nothing yet is refused, and not taken and ignored.
func TestFieldsOfLaterAreAbsent(t *testing.T) {
	t.Parallel()
	for _, plural := range plurals() {
		walk("", schemaOf(t, plural), func(path string, schema apiextensionsv1.JSONSchemaProps) {
			for _, name := range []string{"requires", "hops", "windows", "onFailure", "rollout", "rollback", "discovery", "disruptive", "allowMajor", "from"} {
				if _, found := schema.Properties[name]; found {
					t.Errorf("%s%s.%s is in the schema", plural, path, name)
				}
			}
			for _, value := range schema.Enum {
				for _, name := range []string{`"Cascade"`, `"Observe"`, `"Rollback"`, `"PatchOnly"`, `"MinorOnly"`} {
					if string(value.Raw) == name {
						t.Errorf("%s%s takes %s", plural, path, name)
					}
				}
			}
		})
	}
}

// TestDefinitions: what kubectl shows, and what keeps a CRD from being changed on its way into the cluster.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	columns := map[string][]string{
		"inventories":         {"Phase", "Module", "Version", "Attempt", "Age"},
		"moduleinstallations": {"Module", "Channel", "Version", "Pending", "Ready", "Status", "Desired", "Template", "Catalog", "Objects", "Age"},
		"modules":             {"Default", "Latest", "Installations", "Ready", "Status", "Age"},
		"moduletemplates":     {"Module", "Version", "Channel", "Support", "Used", "Ready", "Status", "Digest", "Age"},
	}
	for plural, want := range columns {
		crd := definition(t, plural)
		if crd.Spec.Group != "modules.sluice.dev" || crd.Spec.Scope != apiextensionsv1.NamespaceScoped || len(crd.Spec.Versions) != 1 {
			t.Errorf("%s: group %q, scope %q, %d versions", plural, crd.Spec.Group, crd.Spec.Scope, len(crd.Spec.Versions))
		}
		if got := crd.Annotations["kustomize.toolkit.fluxcd.io/substitute"]; got != "disabled" {
			t.Errorf("%s: annotation that keeps variables in the CRD from being substituted: got %q", plural, got)
		}
		version := crd.Spec.Versions[0]
		if hasStatus := version.Subresources != nil && version.Subresources.Status != nil; hasStatus != (plural != "inventories") {
			t.Errorf("%s: status subresource: %t", plural, hasStatus)
		}
		var got []string
		for _, column := range version.AdditionalPrinterColumns {
			got = append(got, column.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", plural, diff)
		}
	}
}
