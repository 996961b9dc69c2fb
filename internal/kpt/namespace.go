package kpt

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Namespaces are the names of the Namespaces that the package has for the cluster.
func (r *Resources) Namespaces() []string {
	names := []string{}
	for _, item := range r.Items {
		if id := item.ID(); id.Group == "" && id.Kind == "Namespace" && !item.IsLocalConfig() {
			names = append(names, id.Name)
		}
	}
	return names
}

// AddNamespace gives the package a Namespace of the name, in a file of its own. Wherever the package goes, a merge finds it again.
func (r *Resources) AddNamespace(name string) {
	file := "namespace.yaml"
	for n := 2; r.taken(file); n++ {
		file = fmt.Sprintf("namespace-%d.yaml", n)
	}
	root := newMap()
	setScalar(root, "apiVersion", "v1")
	setScalar(root, "kind", "Namespace")
	setScalar(sure(root, "metadata"), "name", name)
	r.Add(file, yaml.NewRNode(root)).noteOrigin(ID{Name: addedNamespace})
}

// addedNamespace stands for the name of a Namespace that was added.
const addedNamespace = "namespace"

// taken tells whether something is in the place of a file.
func (r *Resources) taken(name string) bool {
	_, found := r.from[name]
	return found
}
