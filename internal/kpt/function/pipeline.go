package function

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// maxEntries bounds the functions of one package: with its own Kptfile before it, one could add another for ever.
const maxEntries = 1000

// pipeline runs the functions of the folder's package: on its objects, and on those of the packages beneath it. Validators get
// copies.
//
// The Kptfile is read again for every function. What a function sets in the configuration of those behind it counts at once, as
// it would the next time: else the package would have to be rendered twice.
func (g *rendering) pipeline(ctx context.Context, folder string) error {
	stages := []bool{false, true}
	if unvalidated(ctx) {
		stages = stages[:1]
	}
	for _, validate := range stages {
		for i := 0; ; i++ {
			pipeline, err := g.read(folder)
			if err != nil {
				return err
			}
			entries := pipeline.Mutators
			if validate {
				entries = pipeline.Validators
			}
			if i >= len(entries) {
				break
			}
			if i >= maxEntries {
				return &Error{Package: folder, Err: fmt.Errorf("%w: it has more than %d functions", ErrTooLarge, maxEntries)}
			}
			if err := g.function(ctx, folder, &entries[i], validate); err != nil {
				return err
			}
		}
	}
	return nil
}

// function runs one.
func (g *rendering) function(ctx context.Context, folder string, entry *kpt.Function, validate bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	called, do, err := g.lookup(folder, entry, validate)
	if err != nil {
		return &Error{Package: folder, Entry: entry.Name, Err: err}
	}
	seen := g.below(folder)
	if validate {
		seen = copies(seen)
	}
	r := &run{seen: seen, objects: selected(seen, entry), room: g.room, compat: g.compat, folder: folder, configures: g.configures, schemas: g.version}
	if r.config, err = g.config(folder, called, entry); err == nil {
		err = guard(func() error { return do(ctx, r) })
	}
	if err == nil && !validate {
		err = g.take(r)
	}
	if err != nil {
		return blame(err, folder, called, entry.Name)
	}
	g.results = append(g.results, Result{
		Package: folder, Function: called, Entry: entry.Name, Validator: validate, Changed: r.changed, Notes: r.notes,
	})
	return nil
}

// below are the objects of the package in the folder and of those beneath it.
func (g *rendering) below(folder string) []*object {
	return slices.DeleteFunc(slices.Clone(g.objects), func(o *object) bool {
		of := o.resource.Subpackage()
		return folder != "" && of != folder && !strings.HasPrefix(of, folder+"/")
	})
}

// copies are objects that a function may change without harm.
func copies(objects []*object) []*object {
	copied := make([]*object, 0, len(objects))
	for _, o := range objects {
		resource := *o.resource
		resource.Node = yaml.NewRNode(yaml.CopyYNode(o.root))
		copied = append(copied, &object{resource: &resource, root: resource.Node.YNode(), namespace: o.namespace})
	}
	return copied
}

// guard makes an error of a panic: one package that nobody thought of is not to end the program.
func guard(do func() error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = &Error{Err: fmt.Errorf("%w: %v", ErrPanic, broken)}
		}
	}()
	return do()
}

// blame says whose error it is.
func blame(err error, folder, called, entry string) error {
	known := &Error{Err: err}
	if inner, ok := errors.AsType[*Error](err); ok {
		known = inner
	}
	known.Package, known.Function, known.Entry = folder, called, entry
	return known
}

// config is what the entry says to its function, nil for nothing.
func (g *rendering) config(folder, called string, entry *kpt.Function) (*config, error) {
	switch {
	case entry.ConfigPath != "" && len(entry.ConfigMap) > 0:
		return nil, errors.New("there are both a configMap and a configPath")
	case entry.ConfigPath != "":
		from, err := g.configFile(folder, entry.ConfigPath)
		if err != nil {
			return nil, &Error{File: entry.ConfigPath, Err: err}
		}
		if takesObjects(called) {
			return &config{own: from.root, from: from}, nil
		}
		if isCustom(entry) {
			return &config{object: from.root}, nil
		}
		read, err := readConfig(from.root)
		if err != nil {
			return nil, &Error{File: entry.ConfigPath, Err: err}
		}
		return read, nil
	case len(entry.ConfigMap) > 0:
		return &config{data: entry.ConfigMap}, nil
	}
	return nil, nil
}

// configFile is the one object in a file of the package: never in one outside of it, nor in one of a package beneath it.
func (g *rendering) configFile(folder, name string) (*object, error) {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, errors.New("the configuration has to be in the package")
	}
	file := path.Join(folder, clean)
	if owner := kpt.Subpackage(g.resources.Folders(), file); owner != folder {
		return nil, fmt.Errorf("the configuration is of the package in %s, and has to be in this one", owner)
	}
	var found *object
	for _, o := range g.objects {
		if o.resource.File != file {
			continue
		}
		if found != nil {
			return nil, errors.New("the file has several objects, and the configuration is one")
		}
		found = o
	}
	if found == nil {
		return nil, errors.New("there is no such file of YAML with an object in it")
	}
	return found, nil
}
