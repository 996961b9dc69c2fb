package function

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// madeObject is an object that a function adds.
type madeObject struct {
	file string
	root *yaml.Node
}

// remove takes an object out of the package, once the function is done.
func (r *run) remove(o *object) {
	if r.gone == nil {
		r.gone = map[*object]bool{}
	}
	r.gone[o] = true
	r.changed++
}

// insert adds an object to the end of a file, which is named from the package's folder, once the function is done.
func (r *run) insert(file string, root *yaml.Node) error {
	if err := r.room.put(nil, root); err != nil {
		return err
	}
	r.made = append(r.made, madeObject{file: path.Join(r.folder, file), root: root})
	r.changed++
	return nil
}

// checkFile tells whether a function may add objects to the file, which is named from the package's folder.
func checkFile(file string) error {
	switch clean := path.Clean(file); {
	case path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../"):
		return fmt.Errorf("the file %q is not in the package", file)
	case !fs.ValidPath(clean) || slices.ContainsFunc(strings.Split(clean, "/"), func(part string) bool {
		return strings.EqualFold(part, ".git") || strings.ContainsFunc(part, unicode.IsControl) || strings.Contains(part, `\`)
	}):
		return fmt.Errorf("the file %q cannot be in a repository", file)
	case path.Base(clean) == kpt.KptfileName || !kpt.HoldsYAML(clean):
		return fmt.Errorf("the file %q holds no objects: its name has to end in .yaml or .yml", file)
	}
	return nil
}

// take does what the function asked for with whole objects.
func (g *rendering) take(r *run) error {
	if len(r.gone) > 0 {
		resources, left := map[*kpt.Resource]bool{}, make([]*object, 0, len(g.objects))
		for _, o := range g.objects {
			if r.gone[o] {
				resources[o.resource] = true
				delete(g.written, o)
				continue
			}
			left = append(left, o)
		}
		g.objects = left
		g.resources.Remove(func(item *kpt.Resource) bool { return resources[item] })
	}
	for _, made := range r.made {
		if len(g.objects) >= g.options.MaxItems {
			return fmt.Errorf("%w: more than %d objects", ErrTooLarge, g.options.MaxItems)
		}
		if owner := kpt.Subpackage(g.resources.Folders(), made.file); owner != r.folder {
			return &Error{File: made.file, Err: errors.New("the file is of another package")}
		}
		if !g.resources.CanHold(made.file) {
			return &Error{File: made.file, Err: errors.New("there is a file of this name that is not read: it is a link, or left out by a .krmignore")}
		}
		resource := g.resources.Add(made.file, yaml.NewRNode(made.root))
		o := &object{resource: resource, root: made.root}
		o.namespace = o.current()
		g.objects = append(g.objects, o)
	}
	return nil
}

// configures tells whether an entry of any pipeline is configured by the object.
func (g *rendering) configures(o *object) (bool, error) {
	for _, folder := range g.folders {
		pipeline, err := g.read(folder)
		if err != nil {
			return false, err
		}
		for _, entries := range [][]kpt.Function{pipeline.Mutators, pipeline.Validators} {
			for i := range entries {
				if entries[i].ConfigPath != "" && path.Join(folder, entries[i].ConfigPath) == o.resource.File {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
