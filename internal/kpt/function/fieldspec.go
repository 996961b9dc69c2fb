package function

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// fieldSpec says where else, in objects of some kinds, a function writes. What is empty is true of all.
type fieldSpec struct {
	Group   string `yaml:"group"`
	Version string `yaml:"version"`
	Kind    string `yaml:"kind"`
	// Path is parted by slashes; [] behind a name stands for all elements of the list, and \/ is a slash in a name.
	Path string `yaml:"path"`
	// Create adds what is missing of the path. Nothing is added to lists.
	Create bool `yaml:"create"`
}

// matches tells whether the field is looked for in the object.
func (s *fieldSpec) matches(o *object) bool {
	group, version := o.resource.GroupVersion()
	return (s.Group == "" || s.Group == group) && (s.Version == "" || s.Version == version) && (s.Kind == "" || s.Kind == o.kind())
}

// steps are the names on the path, with "[]" as a step of its own.
func (s *fieldSpec) steps() ([]string, error) {
	steps := []string{}
	name := strings.Builder{}
	end := func() error {
		step, list := strings.CutSuffix(name.String(), "[]")
		name.Reset()
		if step == "" && !list {
			return fmt.Errorf("the path %q has an empty part", s.Path)
		}
		if step != "" {
			steps = append(steps, step)
		}
		if list {
			steps = append(steps, "[]")
		}
		return nil
	}
	path := strings.TrimPrefix(s.Path, "/")
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '/':
			name.WriteByte('/')
			i++
		case path[i] == '/':
			if err := end(); err != nil {
				return nil, err
			}
		default:
			name.WriteByte(path[i])
		}
	}
	return steps, end()
}

// each calls do with every map at the path.
func (r *run) each(o *object, s *fieldSpec, do func(parent *yaml.Node, path []string) error) error {
	if !s.matches(o) {
		return nil
	}
	steps, err := s.steps()
	if err != nil {
		return err
	}
	return r.below(o, o.root, nil, steps, s.Create, do)
}

func (r *run) below(
	o *object, n *yaml.Node, path, steps []string, create bool, do func(parent *yaml.Node, path []string) error,
) error {
	if len(steps) > 0 && n.Kind == yaml.SequenceNode {
		if steps[0] == "[]" {
			steps = steps[1:]
		}
		for i, element := range n.Content {
			if err := r.below(o, element, join(path, strconv.Itoa(i)), steps, create, do); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return o.fail(path, errors.New("is no map"))
	}
	if len(steps) == 0 {
		return do(n, path)
	}
	if steps[0] == "[]" {
		return o.fail(path, errors.New("is no list"))
	}
	path = join(path, steps[0])
	next := kpt.Lookup(n, steps[0])
	toList := len(steps) > 1 && steps[1] == "[]"
	switch {
	case isNull(next) && (!create || toList):
		return nil
	case next == nil:
		next = &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap}
		if err := r.add(o, n, path, next); err != nil {
			return err
		}
		r.changed--
	case isNull(next):
		becomeMap(next)
	}
	return r.below(o, next, path, steps[1:], create, do)
}
