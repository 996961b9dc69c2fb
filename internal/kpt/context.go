package kpt

import (
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	// ContextFile is where functions find what they are to know of a package.
	ContextFile = "package-context.yaml"
	// ContextName is what the ConfigMap in it is called.
	ContextName = "kptfile.kpt.dev"

	// ContextKeyName is the key under which the context says what the package is called.
	ContextKeyName = "name"
	// ContextKeyPath is the key under which it says where the package is.
	ContextKeyPath = "package-path"
)

// context is the ConfigMap of the package's own context, nil where there is none.
func (r *Resources) context() *Resource {
	for _, item := range r.Items {
		id := item.ID()
		if item.File == ContextFile && id.Group == "" && id.Kind == "ConfigMap" && id.Name == ContextName {
			return item
		}
	}
	return nil
}

// Context is what the package's context says, nil where there is none.
func (r *Resources) Context() map[string]string {
	if found := r.context(); found != nil {
		return stringsAt(found.Node.YNode(), "data")
	}
	return nil
}

// SetContext makes the package's context say the data, and nothing under the keys that are to go; what else it says stays.
// It is made where there is none and something to say.
func (r *Resources) SetContext(data map[string]string, gone []string) {
	found := r.context()
	if found == nil {
		if len(data) == 0 {
			return
		}
		found = r.Add(ContextFile, newContext())
	}
	root := found.Node.YNode()
	for _, key := range gone {
		if Lookup(root, "data", key) != nil {
			remove(sure(root, "data"), key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		setScalar(sure(root, "data"), key, data[key])
	}
}

func newContext() *yaml.RNode {
	root := newMap()
	setScalar(root, "apiVersion", "v1")
	setScalar(root, "kind", "ConfigMap")
	setScalar(sure(root, "metadata"), "name", ContextName)
	setScalar(sure(root, "metadata", "annotations"), LocalConfigAnnotation, "true")
	return yaml.NewRNode(root)
}
