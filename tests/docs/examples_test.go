package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

// example is one object of a page or a sample.
type example struct {
	from   string
	object *unstructured.Unstructured
}

// TestExamplesAreAccepted: the API server takes every example as it stands, without a field too many.
func TestExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	all := append(pageExamples(t), sampleExamples(t)...)
	if len(all) < 15 {
		t.Fatalf("only %d examples were found: they are looked for in the wrong place", len(all))
	}
	for _, e := range all {
		ensureNamespace(t, e.object.GetNamespace())
		if err := accept(t, e.object); err != nil {
			t.Errorf("%s: %s %q: %v", e.from, e.object.GetKind(), e.object.GetName(), err)
		}
	}
}

// TestWrongExamplesAreRefused: what the test above relies on is not vacuous.
func TestWrongExamplesAreRefused(t *testing.T) {
	t.Parallel()
	const good = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: x}\n" +
		"spec: {url: 'https://example.com/x', interval: 1m}\n"
	cases := map[string]struct {
		reason string
		text   string
		want   bool
	}{
		"good":          {"the base of the other cases", good, true},
		"unknown field": {"a field that does not exist is a typing error", strings.Replace(good, "interval: 1m", "interval: 1m, ref: {banch: x}", 1), false},
		"missing field": {"a required field is missing", strings.Replace(good, ", interval: 1m", "", 1), false},
		"unknown kind":  {"the kind is not installed", strings.Replace(good, "kind: GitRepository", "kind: Nothing", 1), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := decode(c.text)
			if err != nil || len(objects) != 1 {
				t.Fatalf("decode: %d objects, %v", len(objects), err)
			}
			ensureNamespace(t, "")
			if err := accept(t, objects[0]); (err == nil) != c.want {
				t.Errorf("%s: accepted: want %t, got error %v", c.reason, c.want, err)
			}
		})
	}
}

func pageExamples(t *testing.T) []example {
	t.Helper()
	var found []example
	for _, page := range pages(t) {
		for _, block := range page.Blocks("yaml") {
			from := fmt.Sprintf("%s:%d", page.Path, block.Line)
			objects, err := decode(dedent(block.Text))
			if err != nil {
				t.Errorf("%s: %v", from, err)
			}
			for _, object := range objects {
				found = append(found, example{from, object})
			}
		}
	}
	return found
}

func sampleExamples(t *testing.T) []example {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found []example
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		from := path.Join("config/samples", filepath.Base(file))
		objects, err := decode(string(text))
		if err != nil {
			t.Errorf("%s: %v", from, err)
		}
		for _, object := range objects {
			found = append(found, example{from, object})
		}
	}
	return found
}

// decode reads the objects of a text in YAML. One without apiVersion and kind is an error: whoever shows a part of an
// object marks the block as "yaml fragment".
func decode(text string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) == 0:
			continue
		case object.GetAPIVersion() == "" || object.GetKind() == "":
			return nil, errors.New("an object without apiVersion and kind")
		}
		objects = append(objects, object)
	}
}

// accept applies the object as a dry run. Server-side apply refuses fields that the schema does not know.
func accept(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	object = object.DeepCopy()
	kind := object.GroupVersionKind()
	mapping, err := env.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
		object.SetNamespace("default")
	}
	return env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
		client.DryRunAll, client.FieldOwner("docs"), client.ForceOwnership)
}

// ensureNamespace makes the namespace of an example; a dry run needs a real one.
func ensureNamespace(t *testing.T, name string) {
	t.Helper()
	if name == "" {
		name = "default"
	}
	if err := env.Client.Create(t.Context(), testenv.Namespace(name)); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("make namespace %q: %v", name, err)
	}
}

func pages(t *testing.T) []docs.Page {
	t.Helper()
	all, err := docs.Pages(testenv.Root())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func page(t *testing.T, name string) docs.Page {
	t.Helper()
	for _, p := range pages(t) {
		if p.Path == name {
			return p
		}
	}
	t.Fatalf("there is no page %s", name)
	return docs.Page{}
}

// dedent takes the indentation of the first line off every line; blocks inside lists have one.
func dedent(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n")
}
