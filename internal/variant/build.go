package variant

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
)

// Renderer runs the pipelines of a package and of its subpackages.
type Renderer interface {
	Render(ctx context.Context, p kpt.Package) (kpt.Package, []function.Result, error)
}

// Version is one state of a variant: what it is made from, and what is made of it.
type Version struct {
	Blueprint Blueprint
	Config    Config
}

// built is a package that was made, with what is to be said of it.
type built struct {
	resources *kpt.Resources
	results   []function.Result
}

// namespaceFunction sets the namespace; its name is known to kpt as well.
const namespaceFunction = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"

// build makes the version, with nothing in it that people did. Where what is injected is not known, fill has it; with are the
// functions by which it is rendered, nil for its own.
func (v Version) build(ctx context.Context, renderer Renderer, fill filler, with *functions) (*built, error) {
	resources, err := kpt.Open(v.Blueprint.Package)
	if err != nil {
		return nil, fmt.Errorf("read the upstream package: %w", err)
	}
	if err := v.adapt(resources); err != nil {
		return nil, fmt.Errorf("read the upstream package: %w", err)
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return nil, err
	}
	// What others found out about the upstream package is not true of this one.
	kptfile.RemoveStatus()
	if name := v.Config.Namespace; name != "" && len(resources.Namespaces()) == 0 {
		resources.AddNamespace(name)
	}
	made, err := v.finish(ctx, renderer, resources, fill, with)
	if err != nil {
		return nil, err
	}
	if name := v.Config.Namespace; name != "" && !slices.Contains(made.resources.Namespaces(), name) {
		// No Namespace of the package became this one. It gets one of its own, and that is rendered as all else is.
		made.resources.AddNamespace(name)
		made, err = v.finish(ctx, renderer, made.resources, fill, with)
	}
	return made, err
}

// adapt makes the package say what the configuration wants it to, in all parts that are the controller's.
func (v Version) adapt(resources *kpt.Resources) error {
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return err
	}
	upstream, lock := v.Blueprint.upstream()
	kptfile.SetName(path.Base(v.Config.Package))
	kptfile.SetUpstream(upstream)
	kptfile.SetLock(lock)
	for _, key := range sortedKeys(v.Config.Labels) {
		kptfile.SetLabel(key, v.Config.Labels[key])
	}
	for _, key := range sortedKeys(v.Config.Annotations) {
		kptfile.SetAnnotation(key, v.Config.Annotations[key])
	}
	resources.SetContext(v.Config.context(), v.Config.ContextGone)
	return kptfile.SetOwnFunctions(v.Config.Owner, v.Config.functions())
}

// context is what the package's context is to say.
func (c Config) context() map[string]string {
	data := map[string]string{}
	maps.Copy(data, c.Context)
	if c.Deployment {
		data[kpt.ContextKeyName] = path.Base(c.Package)
		data[kpt.ContextKeyPath] = c.Package
	}
	return data
}

// functions are the variant's own: the namespace is set first, so that all others see objects where they will be.
func (c Config) functions() kpt.Pipeline {
	own := c.Pipeline
	if c.Namespace != "" {
		own.Mutators = slices.Insert(slices.Clone(own.Mutators), 0, kpt.Function{
			Image: namespaceFunction, Name: "namespace", ConfigMap: map[string]string{"namespace": c.Namespace},
		})
	}
	return own
}

// finish injects, binds and renders, and notes what came of it.
func (v Version) finish(ctx context.Context, renderer Renderer, resources *kpt.Resources, fill filler, with *functions) (*built, error) {
	if err := v.Config.inject(resources, fill); err != nil {
		return nil, err
	}
	said, err := v.Config.bind(resources, fill)
	if err != nil {
		return nil, err
	}
	made, err := v.render(ctx, renderer, resources, with)
	if err != nil {
		return nil, err
	}
	if v.Config.bindsWithin() {
		if made, said, err = v.rebind(ctx, renderer, made, fill, with); err != nil {
			return nil, err
		}
	}
	return made, v.Config.report(made.resources, said)
}

// rebind binds once more now that functions have run: they may have changed what objects of the package say. If it is something
// else than before, the functions see that as well.
func (v Version) rebind(ctx context.Context, renderer Renderer, made *built, fill filler, with *functions) (*built, said, error) {
	before, err := made.resources.Package()
	if err != nil {
		return nil, nil, err
	}
	found, err := v.Config.bind(made.resources, fill)
	if err != nil {
		return nil, nil, err
	}
	after, err := made.resources.Package()
	if err == nil && !before.Equal(after) {
		made, err = v.render(ctx, renderer, made.resources, with)
	}
	return made, found, err
}

// render runs the functions. Those that cannot tell what the package is called see it without its name, so that what is the same
// but for that is rendered once.
func (v Version) render(ctx context.Context, renderer Renderer, resources *kpt.Resources, with *functions) (*built, error) {
	name := ""
	if with == nil && !function.SeesName(resources) {
		var err error
		if name, err = rename(resources, nameless); err != nil {
			return nil, err
		}
	}
	before, err := resources.Package()
	if err != nil {
		return nil, err
	}
	after, results, err := with.render(ctx, anonymous{renderer, v.Config.Owner}, before)
	if err != nil {
		return nil, err
	}
	made := &built{results: results}
	if made.resources, err = kpt.Open(after); err != nil {
		return nil, fmt.Errorf("read what was rendered: %w", err)
	}
	if name != "" {
		if _, err := rename(made.resources, name); err != nil {
			return nil, err
		}
	}
	made.resources.KeepOrigins(resources)
	return made, nil
}
