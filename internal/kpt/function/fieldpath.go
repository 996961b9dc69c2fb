package function

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// fieldPath leads to fields of objects: spec.template.spec.containers.[name=app].image.
type fieldPath []step

// step is one part of a path.
type step struct {
	// key is a name in a map, or a place in a list.
	key string
	// where matches elements of a list: those whose field of the key has the value, or that are the value if key is empty.
	where bool
	value string
	// every stands for all elements of a list, and for all values of a map.
	every bool
}

const (
	// maxSteps bounds the depth of what a path makes.
	maxSteps = 100
	// maxFound bounds how many fields a path leads to.
	maxFound = 100_000
)

// parsePath takes a path apart. Parts stand between dots; a dot within one is written \. or the part is put in brackets, as in
// metadata.annotations.[example.com/name] and containers.[name=app.one]; * stands for all.
func parsePath(from string) (fieldPath, error) {
	path := fieldPath{}
	for rest, more := from, true; more; {
		var part string
		var bracketed bool
		var err error
		part, rest, bracketed, more, err = cutPart(rest)
		if err != nil {
			return nil, fmt.Errorf("the path %q: %w", from, err)
		}
		key, value, matches := strings.Cut(part, "=")
		switch {
		case part == "":
			return nil, fmt.Errorf("the path %q has an empty part", from)
		case bracketed && matches:
			path = append(path, step{key: key, where: true, value: value})
		case part == "*" && !bracketed:
			path = append(path, step{every: true})
		default:
			path = append(path, step{key: part})
		}
		if len(path) > maxSteps {
			return nil, fmt.Errorf("the path is longer than %d parts", maxSteps)
		}
	}
	return path, nil
}

// cutPart takes the first part off; more tells whether a dot follows it.
func cutPart(from string) (part, rest string, bracketed, more bool, err error) {
	if strings.HasPrefix(from, "[") {
		end := strings.IndexByte(from, ']')
		if end < 0 {
			return "", "", false, false, errors.New("a bracket is not closed")
		}
		part, rest = from[1:end], from[end+1:]
		if rest != "" && rest[0] != '.' {
			return "", "", false, false, errors.New("a dot has to follow a bracket that closes")
		}
		more = rest != ""
		return part, strings.TrimPrefix(rest, "."), true, more, nil
	}
	out := strings.Builder{}
	for i := 0; i < len(from); i++ {
		switch {
		case from[i] == '\\' && i+1 < len(from) && from[i+1] == '.':
			out.WriteByte('.')
			i++
		case from[i] == '.':
			return out.String(), from[i+1:], false, true, nil
		default:
			out.WriteByte(from[i])
		}
	}
	return out.String(), "", false, false, nil
}

// location is a field that a path leads to.
type location struct {
	node *yaml.Node
	path []string
}

// find follows the path. With create it makes what is missing, the last part as the kind.
func (p fieldPath) find(r *run, o *object, create bool, kind yaml.Kind) ([]location, error) {
	at := []location{{node: o.root}}
	for i, s := range p {
		next := []location{}
		made := kind
		if i+1 < len(p) {
			made = p[i+1].holder()
		}
		for _, from := range at {
			if isNull(from.node) && create && i > 0 {
				become(from.node, s.holder())
			}
			found := s.from(from)
			if len(found) == 0 && create {
				one, err := s.make(r, o, from, made)
				if err != nil {
					return nil, err
				}
				found = one
			}
			next = append(next, found...)
		}
		if at = next; len(at) > maxFound {
			return nil, fmt.Errorf("%w: a path leads to more than %d fields", ErrTooLarge, maxFound)
		}
	}
	return at, nil
}

// open follows the path, and makes the names that are missing behind the last of its steps that is about a list: whatever stands
// before that has to be there.
func (p fieldPath) open(r *run, o *object) ([]location, error) {
	fixed := len(p)
	for fixed > 0 && !p[fixed-1].where && !p[fixed-1].every {
		fixed--
	}
	found := []location{}
	for _, at := range p[:fixed].there(o) {
		one, err := p[fixed:].names(r, o, at)
		if err != nil {
			return nil, err
		}
		if one.node != nil {
			found = append(found, one)
		}
	}
	return found, nil
}

// names follows steps that are names or places, and makes the names that are missing. The node is nil where a place is.
func (p fieldPath) names(r *run, o *object, at location) (location, error) {
	for i, s := range p {
		if isNull(at.node) {
			becomeMap(at.node)
		}
		next := s.from(at)
		if len(next) == 0 && at.node.Kind == yaml.MappingNode {
			kind := yaml.MappingNode
			if i+1 == len(p) {
				kind = yaml.ScalarNode
			}
			var err error
			if next, err = s.make(r, o, at, kind); err != nil {
				return location{}, err
			}
		}
		if len(next) == 0 {
			return location{}, nil
		}
		at = next[0]
	}
	return at, nil
}

// replaced tells whether what the path chose an element of a list by is the value by now: [=a] where a became the value, and
// [name=a].name. The path leads to it no longer, and is not to make another one.
func (p fieldPath) replaced(o *object, value *yaml.Node) bool {
	last := len(p) - 1
	switch {
	case p[last].where:
		for _, list := range p[:last].there(o) {
			// A scalar became one of the kind that was there.
			if slices.ContainsFunc(kpt.Elements(list.node), func(n *yaml.Node) bool {
				return sameNode(n, value) || n.Kind == yaml.ScalarNode && value.Kind == yaml.ScalarNode && n.Value == value.Value
			}) {
				return len(p.there(o)) == 0
			}
		}
	case last > 0 && p[last-1].where && p[last-1].key == p[last].key && value.Kind == yaml.ScalarNode:
		renamed := slices.Clone(p)
		renamed[last-1].value = value.Value
		return len(p.there(o)) == 0 && len(renamed.there(o)) > 0
	}
	return false
}

// there are the fields that the path leads to, without making any.
func (p fieldPath) there(o *object) []location {
	at := []location{{node: o.root}}
	for _, s := range p {
		next := []location{}
		for _, from := range at {
			next = append(next, s.from(from)...)
		}
		at = next
	}
	return at
}

// holder is what a step leads on from.
func (s step) holder() yaml.Kind {
	if s.where {
		return yaml.SequenceNode
	}
	return yaml.MappingNode
}

// from are the fields that the step leads to.
func (s step) from(at location) []location {
	found := []location{}
	switch n := at.node; n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content) && !s.where; i += 2 {
			if s.every || n.Content[i].Value == s.key {
				found = append(found, location{n.Content[i+1], join(at.path, n.Content[i].Value)})
			}
		}
	case yaml.SequenceNode:
		for i, element := range n.Content {
			if s.matches(i, element) {
				found = append(found, location{element, join(at.path, strconv.Itoa(i))})
			}
		}
	default: // Nothing is below a scalar.
	}
	return found
}

// matches tells whether the step leads to the element of a list.
func (s step) matches(i int, element *yaml.Node) bool {
	switch {
	case s.every:
		return true
	case !s.where:
		return s.key == strconv.Itoa(i)
	case s.key == "":
		return element.Kind == yaml.ScalarNode && element.Value == s.value
	}
	value := kpt.Lookup(element, s.key)
	return value != nil && value.Kind == yaml.ScalarNode && value.Value == s.value
}

// make adds what the step leads to: a field of a map, an element that has the value, or one behind the last of a list.
func (s step) make(r *run, o *object, at location, kind yaml.Kind) ([]location, error) {
	n, made := at.node, &yaml.Node{}
	become(made, kind)
	switch {
	case s.every:
		return nil, nil
	case n.Kind == yaml.MappingNode && !s.where:
		path := join(at.path, s.key)
		if err := r.add(o, n, path, made); err != nil {
			return nil, err
		}
		r.changed--
		return []location{{made, path}}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, nil
	case s.where && s.key == "":
		made = newText(s.value)
	case s.where:
		made = &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap, Content: []*yaml.Node{newText(s.key), newText(s.value)}}
	case s.key != strconv.Itoa(len(n.Content)):
		return nil, nil
	}
	path := join(at.path, strconv.Itoa(len(n.Content)))
	if err := r.room.hold(size(made)+int64(len(path))*2, count(made)); err != nil {
		return nil, o.fail(path, err)
	}
	n.Content = append(n.Content, made)
	return []location{{made, path}}, nil
}

// become makes an empty one of the kind: a null where a scalar is to be.
func become(n *yaml.Node, kind yaml.Kind) {
	switch kind {
	case yaml.MappingNode:
		becomeMap(n)
	case yaml.SequenceNode:
		n.Kind, n.Tag, n.Value, n.Style = yaml.SequenceNode, tagList, "", 0
	default:
		n.Kind, n.Tag, n.Value, n.Style = yaml.ScalarNode, tagNull, "", 0
	}
}
