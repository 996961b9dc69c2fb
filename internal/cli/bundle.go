package cli

import (
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/config"
)

// bundle is what a cluster needs, made of the manifests that this program was built with.
type bundle struct {
	// controllers are all, or source for the source plane alone.
	controllers string
	// namespace is where the controllers run, and image what they run; "" leaves the manifests' own.
	namespace, image string
	// ui adds the web UI.
	ui bool
}

// build builds the kustomization, in the order in which the objects are applied.
func (b bundle) build() (resmap.ResMap, error) {
	folder, known := map[string]string{"all": "default", "source": "sources"}[b.controllers]
	if !known {
		return nil, usage("--controllers "+b.controllers+" is none", "it is all, or source for the source plane alone")
	}
	tree := filesys.MakeFsInMemory()
	err := fs.WalkDir(config.Manifests, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := config.Manifests.ReadFile(name)
		if err == nil && (name == "default/kustomization.yaml" || name == "ui/kustomization.yaml") {
			content, err = b.edited(content)
		}
		if err == nil {
			err = tree.WriteFile(path.Join("/", name), content)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // The kustomization says the order.
	built, err := krusty.MakeKustomizer(options).Run(tree, path.Join("/", folder))
	if err == nil && b.ui {
		var ui resmap.ResMap
		if ui, err = krusty.MakeKustomizer(options).Run(tree, "/ui"); err == nil {
			err = built.AppendAll(ui)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("build the manifests: %w", err)
	}
	return built, nil
}

// edited is the kustomization with the namespace and the image, which stand there alone.
func (b bundle) edited(content []byte) ([]byte, error) {
	var k types.Kustomization
	if err := yaml.UnmarshalStrict(content, &k); err != nil {
		return nil, err
	}
	if b.namespace != "" {
		k.Namespace = b.namespace
	}
	if b.image != "" {
		image, err := imageOf(b.image)
		if err != nil {
			return nil, err
		}
		k.Images = []types.Image{image}
	}
	return yaml.Marshal(k)
}

// objects are those of the bundle.
func (b bundle) objects() ([]*unstructured.Unstructured, error) {
	built, err := b.build()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		obj := &unstructured.Unstructured{}
		raw, err := resource.MarshalJSON()
		if err == nil {
			err = obj.UnmarshalJSON(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		all = append(all, obj)
	}
	return all, nil
}
