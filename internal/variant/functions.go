package variant

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
)

// functions are those that a package is rendered by, its own and its subpackages'.
type functions struct {
	// kptfiles have the pipelines, by their folders.
	kptfiles map[string]*kpt.Kptfile
	// configs are files that configure them.
	configs kpt.Package
}

// functionsOf are those of the package.
func functionsOf(p kpt.Package) (*functions, error) {
	kptfiles := kpt.Package{}
	for name, file := range p {
		if path.Base(name) == kpt.KptfileName {
			kptfiles[name] = file
		}
	}
	resources, err := kpt.Open(kptfiles)
	if err != nil {
		return nil, err
	}
	all := &functions{kptfiles: map[string]*kpt.Kptfile{}, configs: kpt.Package{}}
	for _, folder := range resources.Folders() {
		kptfile, err := resources.Kptfile(folder)
		if errors.Is(err, kpt.ErrNoKptfile) {
			continue // A link, or a file that is no package's.
		}
		if err != nil {
			return nil, err
		}
		pipeline, err := kptfile.Pipeline()
		if err != nil {
			return nil, err
		}
		all.kptfiles[folder] = kptfile
		for _, mutator := range pipeline.Mutators {
			name := path.Join(folder, mutator.ConfigPath)
			if config, found := p[name]; found && mutator.ConfigPath != "" {
				all.configs[name] = config
			}
		}
	}
	return all, nil
}

// same tells whether the packages that both have are rendered by the same.
func (f *functions) same(other *functions) (bool, error) {
	for folder, kptfile := range f.kptfiles {
		counterpart, found := other.kptfiles[folder]
		if !found {
			continue
		}
		texts := [2]string{}
		for i, k := range []*kpt.Kptfile{kptfile, counterpart} {
			pipeline, err := k.Pipeline()
			if err != nil {
				return false, err
			}
			text, err := json.Marshal(pipeline.Mutators)
			if err != nil {
				return false, err
			}
			texts[i] = string(text)
		}
		if texts[0] != texts[1] {
			return false, nil
		}
	}
	return true, nil
}

// render renders the package by these functions in the place of its own, but says in its Kptfiles what they said. Validators are
// not run then: what they look at is not what is to be.
func (f *functions) render(ctx context.Context, renderer Renderer, p kpt.Package) (kpt.Package, []function.Result, error) {
	if f == nil {
		return renderer.Render(ctx, p)
	}
	resources, err := kpt.Open(p)
	if err != nil {
		return nil, nil, err
	}
	for folder, from := range f.kptfiles {
		kptfile, err := resources.Kptfile(folder)
		if errors.Is(err, kpt.ErrNoKptfile) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		kptfile.TakeMutators(from)
	}
	with, err := resources.Package()
	if err != nil {
		return nil, nil, err
	}
	for name, config := range f.configs {
		if _, found := p[name]; !found {
			with[name] = config
		}
	}
	rendered, results, err := renderer.Render(ctx, with)
	if err != nil {
		return nil, nil, err
	}
	rendered = maps.Clone(rendered)
	for name := range f.configs {
		if _, found := p[name]; !found {
			delete(rendered, name)
		}
	}
	for folder := range f.kptfiles {
		if name := path.Join(folder, kpt.KptfileName); len(p[name].Content) > 0 {
			rendered[name] = p[name]
		}
	}
	return rendered, results, nil
}
