// Package config builds the kustomizations under config/ for tests.
// It does not know what they are for, and talks to no cluster.
package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build renders the kustomization in the folder, as kubectl apply -k would, and returns its objects in the order in
// which they are to be applied.
func Build(path string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // The kustomization says the order.
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		return nil, fmt.Errorf("build %q: %w", path, err)
	}
	objects := make([]*unstructured.Unstructured, 0, built.Size())
	for _, resource := range built.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("build %q: write %s: %w", path, resource.CurId(), err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("build %q: read %s: %w", path, resource.CurId(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
