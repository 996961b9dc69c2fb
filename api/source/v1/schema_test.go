package v1_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// contract is what a kind promises on the wire.
type contract struct {
	names   apiextensionsv1.CustomResourceDefinitionNames
	columns []apiextensionsv1.CustomResourceColumnDefinition
	rules   apiextensionsv1.ValidationRules // of spec, the only ones that span two fields

	// fields are those of spec and status beyond the common ones: each with its type, whether it is required, and
	// all that restricts it. Descriptions are ours; everything else has to stay as Flux has it.
	fields map[string]string
	// without are the common fields that the kind does not have.
	without []string
	// group and version are those of Flux's sources where they are empty.
	group, version string
}

func (c contract) groupVersion() (group, version string) {
	if c.group == "" {
		return "source.toolkit.fluxcd.io", "v1"
	}
	return c.group, c.version
}

func contracts() map[string]contract {
	return map[string]contract{
		"GitRepository": gitRepositoryContract(), "OCIRepository": ociRepositoryContract(),
		"Bucket": bucketContract(), "ExternalArtifact": externalArtifactContract(),
		"HelmChart": helmChartContract(), "HelmRepository": helmRepositoryContract(),
		"ArtifactGenerator": artifactGeneratorContract(),
	}
}

// digestPattern is the pattern that an artifact's digest has to match.
const digestPattern = "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$"

// common are the fields of every kind's status. What Sluice adds is marked as an addition.
func common() map[string]string {
	return map[string]string{
		"status":                                 `object default={"observedGeneration":-1}`,
		"status.artifact":                        "object",
		"status.artifact.digest":                 "string required pattern=" + digestPattern,
		"status.artifact.lastUpdateTime":         "string required format=date-time",
		"status.artifact.metadata":               "object",
		"status.artifact.metadata{}":             "string",
		"status.artifact.path":                   "string required",
		"status.artifact.revision":               "string required",
		"status.artifact.size":                   "integer format=int64",
		"status.artifact.url":                    "string required",
		"status.conditions":                      "array",
		"status.conditions[]":                    "object",
		"status.conditions[].lastTransitionTime": "string required format=date-time",
		"status.conditions[].message":            "string required maxLength=32768",
		"status.conditions[].observedGeneration": "integer format=int64 minimum=0",
		"status.conditions[].reason":             "string required minLength=1 maxLength=1024 pattern=^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
		"status.conditions[].status":             `string required enum="True"|"False"|"Unknown"`,
		"status.conditions[].type":               `string required maxLength=316 pattern=^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
		"status.contentConfigChecksum":           "string", // an addition
		"status.lastHandledReconcileAt":          "string",
		"status.observedGeneration":              "integer format=int64",
	}
}

func TestSchemaIsTheWireContract(t *testing.T) {
	t.Parallel()
	for kind, want := range contracts() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fields, got := common(), map[string]string{}
			maps.Copy(fields, want.fields)
			for _, field := range want.without {
				delete(fields, field)
			}
			schema := version(t, want).Schema.OpenAPIV3Schema
			flatten(got, "spec", schema.Properties["spec"], false)
			flatten(got, "status", schema.Properties["status"], false)
			if diff := cmp.Diff(fields, got); diff != "" {
				t.Errorf("fields of the generated CRD (-want +got):\n%s", diff)
			}
			if len(schema.Required) != 0 {
				t.Errorf("an object needs neither spec nor status by schema, got required %q", schema.Required)
			}
			if diff := cmp.Diff(want.rules, schema.Properties["spec"].XValidations); diff != "" {
				t.Errorf("rules of spec (-want +got):\n%s", diff)
			}
			if got := schema.XValidations; len(got) != 0 {
				t.Errorf("the object has no rules, got %v", got)
			}
		})
	}
}

func TestColumnsAreTheWireContract(t *testing.T) {
	t.Parallel()
	for kind, want := range contracts() {
		if diff := cmp.Diff(want.columns, version(t, want).AdditionalPrinterColumns); diff != "" {
			t.Errorf("%s: printer columns (-want +got):\n%s", kind, diff)
		}
	}
}

func TestNamesAreTheWireContract(t *testing.T) {
	t.Parallel()
	for kind, want := range contracts() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			crd := definition(t, want)
			if diff := cmp.Diff(want.names, crd.Spec.Names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			wantGroup, wantVersion := want.groupVersion()
			if got := crd.Spec.Group; got != wantGroup {
				t.Errorf("group: got %q", got)
			}
			if got := crd.Spec.Scope; got != apiextensionsv1.NamespaceScoped {
				t.Errorf("scope: got %q", got)
			}
			if got := crd.Annotations["kustomize.toolkit.fluxcd.io/substitute"]; got != "disabled" {
				t.Errorf("annotation that keeps variables in the CRD from being substituted: got %q", got)
			}
			v := version(t, want)
			if v.Name != wantVersion || !v.Served || !v.Storage || v.Subresources == nil || v.Subresources.Status == nil {
				t.Errorf("the version has to be served and stored, with a status subresource: got %q served=%t storage=%t %v",
					v.Name, v.Served, v.Storage, v.Subresources)
			}
		})
	}
}

// TestEveryKindHasAContract: a CRD that no contract is written for could change unseen.
func TestEveryKindHasAContract(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(definitions)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, contract := range contracts() {
		want[file(contract)] = true
	}
	got := map[string]bool{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "source.") {
			got[entry.Name()] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CRDs (-with a contract +generated):\n%s", diff)
	}
}

const definitions = "../../../config/crd/bases"

func file(c contract) string {
	group, _ := c.groupVersion()
	return group + "_" + c.names.Plural + ".yaml"
}

func definition(t *testing.T, c contract) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(definitions + "/" + file(c))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func version(t *testing.T, c contract) apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	versions := definition(t, c).Spec.Versions
	if len(versions) != 1 {
		t.Fatalf("one version is served and stored, got %d", len(versions))
	}
	return versions[0]
}

// flatten writes one line a field. Every keyword a schema may hold has a place in the line or ends up in "other",
// so that no restriction can come in unseen.
func flatten(into map[string]string, path string, schema apiextensionsv1.JSONSchemaProps, required bool) {
	into[path] = describe(schema, required)
	for name, property := range schema.Properties {
		flatten(into, path+"."+name, property, slices.Contains(schema.Required, name))
	}
	if schema.Items != nil {
		flatten(into, path+"[]", *schema.Items.Schema, false)
	}
	if schema.AdditionalProperties != nil {
		flatten(into, path+"{}", *schema.AdditionalProperties.Schema, false)
	}
}

func describe(schema apiextensionsv1.JSONSchemaProps, required bool) string {
	words := []string{schema.Type}
	if required {
		words = append(words, "required")
	}
	if schema.Default != nil {
		words = append(words, "default="+string(schema.Default.Raw))
	}
	if len(schema.Enum) > 0 {
		values := make([]string, 0, len(schema.Enum))
		for _, value := range schema.Enum {
			values = append(values, string(value.Raw))
		}
		words = append(words, "enum="+strings.Join(values, "|"))
	}
	if schema.Format != "" {
		words = append(words, "format="+schema.Format)
	}
	if schema.Minimum != nil {
		words = append(words, fmt.Sprintf("minimum=%v", *schema.Minimum))
	}
	if schema.MinLength != nil {
		words = append(words, fmt.Sprintf("minLength=%d", *schema.MinLength))
	}
	if schema.MaxLength != nil {
		words = append(words, fmt.Sprintf("maxLength=%d", *schema.MaxLength))
	}
	if schema.Pattern != "" {
		words = append(words, "pattern="+schema.Pattern)
	}
	for _, rule := range schema.XValidations {
		words = append(words, "rule="+rule.Rule)
	}
	if rest := remainder(schema); rest != "{}" {
		words = append(words, "other="+rest)
	}
	return strings.Join(words, " ")
}

// remainder is what a schema holds beyond the keywords that describe and flatten look at.
func remainder(schema apiextensionsv1.JSONSchemaProps) string {
	schema.Description, schema.Type, schema.Format, schema.Pattern = "", "", "", ""
	schema.Default, schema.Enum, schema.Required = nil, nil, nil
	schema.Minimum, schema.MinLength, schema.MaxLength, schema.XValidations = nil, nil, nil, nil
	schema.Properties, schema.Items, schema.AdditionalProperties = nil, nil, nil
	rest, err := yaml.Marshal(schema)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(rest))
}
