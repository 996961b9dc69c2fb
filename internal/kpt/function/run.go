package function

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/schema"
)

// run is one function at work in one package.
type run struct {
	// objects are those that the function may change, and seen all that the package has, its own and those beneath it.
	objects, seen []*object
	config        *config
	room          *room
	// compat has functions do what kpt's do, where that is something else.
	compat bool
	// folder is that of the package whose pipeline runs, and configures tells whether an entry of any pipeline is configured by
	// the object.
	folder     string
	configures func(*object) (bool, error)
	// schemas are what the API server says of a version of a group, nil where it has no such version.
	schemas func(ctx context.Context, group, version string) (*schema.Document, error)
	// gone are objects that the function takes out, and made those that it adds, by their files.
	gone map[*object]bool
	made []madeObject
	// changed counts the values that were set, and notes is what else is to be said.
	changed int
	notes   []string
}

// maxNotes is how many remarks of one function are kept.
const maxNotes = 10

// note keeps a remark.
func (r *run) note(format string, args ...any) {
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// setText makes the key's value the string. The key is added where it is not there.
func (r *run) setText(o *object, parent *yaml.Node, path []string, value string) error {
	key := path[len(path)-1]
	found := kpt.Lookup(parent, key)
	if found == nil {
		return r.add(o, parent, path, newText(value))
	}
	return r.replaceText(o, found, path, value)
}

// replaceText makes a scalar that is there the string. What says so already is not touched.
func (r *run) replaceText(o *object, n *yaml.Node, path []string, value string) error {
	if n.Kind != yaml.ScalarNode {
		return o.fail(path, errors.New("is no string"))
	}
	if n.Value == value && isString(n) {
		return nil
	}
	if err := r.room.take(int64(len(value)) - int64(len(n.Value))); err != nil {
		return o.fail(path, err)
	}
	n.Value, n.Tag = value, tagString
	n.Style &^= yaml.TaggedStyle
	if !isQuoted(n) && needsQuotes(value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	r.changed++
	return nil
}

// add appends the key to the map.
func (r *run) add(o *object, parent *yaml.Node, path []string, value *yaml.Node) error {
	key := newText(path[len(path)-1])
	if err := r.room.hold(size(key)+size(value)+int64(2*len(path)), 1+count(value)); err != nil {
		return o.fail(path, err)
	}
	parent.Content = append(parent.Content, key, value)
	r.changed++
	return nil
}

// mapping follows the path down to a map, and makes what is missing on the way.
func (r *run) mapping(o *object, path []string) (*yaml.Node, error) {
	n := o.root
	for i, key := range path {
		next := kpt.Lookup(n, key)
		switch {
		case next == nil:
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap}
			if err := r.add(o, n, path[:i+1], next); err != nil {
				return nil, err
			}
			r.changed-- // The values in it count.
		case isNull(next):
			becomeMap(next)
		case next.Kind != yaml.MappingNode:
			return nil, o.fail(path[:i+1], errors.New("is no map"))
		}
		n = next
	}
	return n, nil
}

// becomeMap makes an empty map of a null.
func becomeMap(n *yaml.Node) { n.Kind, n.Tag, n.Value, n.Style = yaml.MappingNode, tagMap, "", 0 }

// join is the path with more behind it, in memory of its own.
func join(path []string, more ...string) []string {
	return append(slices.Clip(slices.Clone(path)), more...)
}
