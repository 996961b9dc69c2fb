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

// plurals are the resources of the group, and their short names.
func plurals() map[string]string {
	return map[string]string{"repositories": "pkgrepo", "packagevariants": "pkgvar", "packagerevisions": "pkgrev"}
}

func definition(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../../config/crd/bases/packages.sluice.dev_" + plural + ".yaml")
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

// walk visits every schema below spec and status, except those that are Kubernetes' or Flux's own.
func walk(path string, schema apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	if strings.HasSuffix(path, ".conditions") || strings.HasSuffix(path, ".labelSelector") || path == ".status.artifact" {
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

// unbounded says in what a field of ours takes any amount; "" where it does not.
func unbounded(path string, schema apiextensionsv1.JSONSchemaProps) string {
	// Values of maps have no place for a bound in Go; their number has one, and so has the whole object. The time that
	// a reconcile was asked for is Flux's type.
	if strings.HasSuffix(path, "{}") || path == ".status.lastHandledReconcileAt" {
		return ""
	}
	switch {
	case schema.Type == "string" && schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format != "date-time":
		return "a string without maxLength or enum"
	case schema.Type == "array" && (schema.MaxItems == nil || schema.XListType == nil):
		return "a list without maxItems or list type"
	case schema.Type == "integer" && (schema.Minimum == nil || schema.Maximum == nil):
		return "a number without bounds"
	case schema.Type == "object" && schema.AdditionalProperties != nil && schema.MaxProperties == nil:
		return "a map without maxProperties"
	}
	return ""
}

func TestEverythingIsBounded(t *testing.T) {
	t.Parallel()
	for plural := range plurals() {
		fields := 0
		walk("", schemaOf(t, plural), func(path string, schema apiextensionsv1.JSONSchemaProps) {
			fields++
			if said := unbounded(path, schema); said != "" {
				t.Errorf("%s%s: %s", plural, path, said)
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
	for plural := range plurals() {
		conditions := schemaOf(t, plural).Properties["status"].Properties["conditions"]
		if conditions.XListType == nil || *conditions.XListType != "map" {
			t.Errorf("%s: conditions are no map", plural)
		}
		if diff := cmp.Diff([]string{"type"}, conditions.XListMapKeys); diff != "" {
			t.Errorf("%s: key of conditions (-want +got):\n%s", plural, diff)
		}
	}
}

// TestDefinitions: what kubectl shows, and what keeps a CRD from being changed on its way into the cluster.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	columns := map[string][]string{
		"repositories":     {"Branch", "Directory", "Deployment", "Packages", "Changes", "Ready", "Status", "URL", "Head", "Age"},
		"packagevariants":  {"Upstream", "Revision", "Repository", "Package", "Change", "Conflicts", "Published", "Ready", "Status", "Approval", "Workspace", "Age"},
		"packagerevisions": {"Repository", "Package", "Workspace", "Revision", "Lifecycle", "Ready", "Status", "Requested", "Commit", "Variant", "Age"},
	}
	for plural, short := range plurals() {
		crd := definition(t, plural)
		if crd.Spec.Group != "packages.sluice.dev" || crd.Spec.Scope != apiextensionsv1.NamespaceScoped || len(crd.Spec.Versions) != 1 {
			t.Errorf("%s: group %q, scope %q, %d versions", plural, crd.Spec.Group, crd.Spec.Scope, len(crd.Spec.Versions))
		}
		if got := crd.Annotations["kustomize.toolkit.fluxcd.io/substitute"]; got != "disabled" {
			t.Errorf("%s: annotation that keeps variables in the CRD from being substituted: got %q", plural, got)
		}
		if names := crd.Spec.Names; !slices.Equal(names.ShortNames, []string{short}) || !slices.Equal(names.Categories, []string{"sluice", "sluice-packages"}) {
			t.Errorf("%s: short names %q, categories %q", plural, names.ShortNames, names.Categories)
		}
		version := crd.Spec.Versions[0]
		if version.Subresources == nil || version.Subresources.Status == nil {
			t.Errorf("%s has no status subresource", plural)
		}
		var got []string
		for _, column := range version.AdditionalPrinterColumns {
			got = append(got, column.Name)
		}
		if diff := cmp.Diff(columns[plural], got); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", plural, diff)
		}
	}
}
