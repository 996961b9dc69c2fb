package docs_test

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// home is a small object that is accepted, and where in it the fragments of a page belong.
type home struct {
	object string
	at     []string
}

// homes are those of pages with fragments of the API's objects.
func homes() map[string]home {
	return map[string]home{
		"docs/repository.md": {
			"apiVersion: packages.sluice.dev/v1alpha1\nkind: Repository\nmetadata: {name: x}\n" +
				"spec: {gitRepositoryRef: {name: x}}\n", nil,
		},
		"docs/module-resolution.md": {
			"apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: x}\n" +
				"spec: {module: {name: foo, latest: true}, serviceAccountName: x}\n", []string{"status"},
		},
		// Args are a container's, and a Pod's containers are a list.
		"docs/beside-flux.md": {"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n", []string{"container"}},
	}
}

// with is the home with the fragment in its place.
func (h home) with(t *testing.T, fragment map[string]any) *unstructured.Unstructured {
	t.Helper()
	objects, err := decode(h.object)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%q: %d objects, %v", h.object, len(objects), err)
	}
	object := objects[0]
	switch {
	case len(h.at) == 0:
		merge(object.Object, fragment)
	case h.at[0] == "container":
		container := map[string]any{"name": "x", "image": "x"}
		maps.Copy(container, fragment)
		err = unstructured.SetNestedSlice(object.Object, []any{container}, "spec", "containers")
	default:
		err = unstructured.SetNestedMap(object.Object, fragment, h.at...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// merge puts what one map says into another, field by field.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		outer, both := into[key].(map[string]any)
		if isMap && both {
			merge(outer, inner)
			continue
		}
		into[key] = value
	}
}

// TestFragmentsAreAccepted in the object that they belong to. Configurations of functions, of which the API server knows nothing,
// are run by the functions' own test.
func TestFragmentsAreAccepted(t *testing.T) {
	t.Parallel()
	ensureNamespace(t, "default")
	accepted := map[string]int{}
	for _, page := range pages(t) {
		for _, block := range page.Blocks("yaml fragment") {
			from := fmt.Sprintf("%s:%d", page.Path, block.Line)
			var fragment map[string]any
			if err := yaml.Unmarshal([]byte(dedent(block.Text)), &fragment); err != nil {
				t.Errorf("%s: %v", from, err)
				continue
			}
			object := &unstructured.Unstructured{Object: fragment}
			if place, ok := homes()[page.Path]; ok {
				object = place.with(t, fragment)
			} else if page.Path == "docs/package-functions.md" && !isServed(object) {
				continue
			}
			ensureNamespace(t, object.GetNamespace())
			if err := accept(t, object); err != nil {
				t.Errorf("%s: in a %s: %v", from, object.GetKind(), err)
			}
			accepted[page.Path]++
		}
	}
	for path, place := range homes() {
		if accepted[path] == 0 {
			t.Errorf("%s has no fragment", path)
		}
		wrong := place.with(t, map[string]any{"nosuchfield": "x"})
		if err := accept(t, wrong); err == nil {
			t.Errorf("%s: a field that does not exist is accepted", path)
		}
	}
	if accepted["docs/package-functions.md"] < 3 {
		t.Errorf("accepted: %v", accepted)
	}
}

// isServed tells whether the object is one, and of a kind that the API server has.
func isServed(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	_, err := env.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && !object.IsList()
}
