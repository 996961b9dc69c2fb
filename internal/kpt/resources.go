package kpt

import (
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Resources are the objects of a package and of its subpackages. They are read once and written once; who changes them in
// between does so from one goroutine.
type Resources struct {
	// Items are the objects, in the order of their files and of the documents in them. They may be changed, removed and
	// added to; see Add.
	Items []*Resource

	from    Package
	folders []string
	files   map[string][]*document
}

// Open reads all objects: every document of files called Kptfile, *.yaml and *.yml that has an apiVersion and a kind. What else
// is in those files is kept as it is, and files that a .krmignore leaves out are not read. An error is a *SyntaxError.
func Open(p Package) (*Resources, error) { return open(p, false) }

// OpenDocuments is Open for who looks at all documents: what is no object is an item as well, unless it is nothing but comments.
// The node of such a one need not be a map.
func OpenDocuments(p Package) (*Resources, error) { return open(p, true) }

func open(p Package, all bool) (*Resources, error) {
	r := &Resources{from: p, folders: p.Folders(), files: map[string][]*document{}}
	ignored := ignores(p)
	for _, name := range p.Paths() {
		if p[name].Mode.Type() != 0 || !HoldsYAML(name) || ignored(name) {
			continue
		}
		if err := r.open(name, all); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// HoldsYAML tells by the name of a file whether there are objects in it.
func HoldsYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml" || path.Base(name) == KptfileName
}

func (r *Resources) open(name string, all bool) error {
	documents, err := split(name, r.from[name].Content)
	if err != nil {
		return err
	}
	r.files[name] = documents
	for i, d := range documents {
		if err := d.parse(); err != nil {
			return d.explain(name, err)
		}
		if d.root == nil || !all && !d.isObject() {
			continue
		}
		d.item = true
		around := *d.root
		r.Items = append(r.Items, &Resource{
			File: name, Index: i, Node: yaml.NewRNode(d.root.Content[0]), Document: &around, origin: d, folder: Subpackage(r.folders, name),
		})
	}
	return nil
}

// Add appends an object to a file, which need not be there yet.
func (r *Resources) Add(file string, node *yaml.RNode) *Resource {
	added := &Resource{File: file, Index: len(r.files[file]), Node: node, folder: Subpackage(r.folders, file)}
	r.Items = append(r.Items, added)
	return added
}

// CanHold tells whether objects can be added to the file: some of it were read, or it is not there yet, and neither is a file in
// the place of one of its folders nor a folder in its own, nor would a .krmignore leave it out.
func (r *Resources) CanHold(file string) bool {
	if _, read := r.files[file]; read {
		return true
	}
	collides := func(name string) bool { return strings.HasPrefix(name, file+"/") || strings.HasPrefix(file, name+"/") }
	for name := range r.from {
		if name == file || collides(name) {
			return false
		}
	}
	for _, item := range r.Items {
		if item.origin == nil && collides(item.File) {
			return false
		}
	}
	return !ignores(r.from)(file)
}

// Remove takes the objects out that the function is true for.
func (r *Resources) Remove(gone func(*Resource) bool) { r.Items = slices.DeleteFunc(r.Items, gone) }

// Folders are those of the package and its subpackages, as Package.Folders has them.
func (r *Resources) Folders() []string { return slices.Clone(r.folders) }

// Package writes the objects back. Documents of which nothing changed keep every byte, and so does what is around them; objects
// that were added stand at the end of their files; a file goes with the last of its objects, unless it says something else.
func (r *Resources) Package() (Package, error) {
	written := maps.Clone(r.from)
	items := map[string][]*Resource{}
	for _, item := range r.Items {
		items[item.File] = append(items[item.File], item)
	}
	names := map[string]bool{}
	for name := range r.files {
		names[name] = true
	}
	for name := range items {
		names[name] = true
	}
	for name := range names {
		content, err := r.write(name, items[name])
		if err != nil {
			return nil, err
		}
		if content == nil {
			delete(written, name)
			continue
		}
		file := File{Content: content, Mode: 0o644}
		if before, found := r.from[name]; found {
			file.Mode = before.Mode
		}
		written[name] = file
	}
	return written, nil
}
