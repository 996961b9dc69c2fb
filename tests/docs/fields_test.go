package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/tests/testenv"
)

// shared are fields whose own fields are those of every kind, which Kubernetes' and Flux's documentation explain, and
// releases, functions and changes, whose fields are explained once.
var shared = []string{
	"status.conditions[]", "status.artifact", "status.includedArtifacts[]", "status.observedInclude[]",
	"spec.consumers.namespaceSelector",
	"spec.injectors[].labelSelector", "spec.pipeline.mutators[]", "spec.pipeline.validators[]", "status.preview",
	"status.desired", "status.attempted", "status.previous", "data.current", "data.previous", "data.attempt.release",
}

// schemaFields are the fields of spec, status and data, as the API server knows them.
func schemaFields(t *testing.T, definition string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), definition))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, top := range []string{"spec", "status", "data"} {
		if schema, found := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[top]; found {
			fields = append(fields, below(top, schema)...)
		}
	}
	if len(fields) < 15 {
		t.Fatalf("only %d fields were found in %s", len(fields), definition)
	}
	return fields
}

func below(name string, schema apiextensionsv1.JSONSchemaProps) []string {
	if schema.Items != nil && schema.Items.Schema != nil {
		schema, name = *schema.Items.Schema, name+"[]"
	}
	if len(schema.Properties) == 0 || slices.Contains(shared, name) {
		return []string{name}
	}
	var fields []string
	for key, property := range schema.Properties {
		fields = append(fields, below(name+"."+key, property)...)
	}
	slices.Sort(fields)
	return fields
}
