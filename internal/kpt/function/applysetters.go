package function

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// setterMark begins the comment that says what a value is made of: # kpt-set: ${image}:${tag}.
const setterMark = "kpt-set:"

// applySetters writes values where comments ask for them. A value is touched only if its comment names a setter that there is a
// value for; see pattern.go for the others that it names.
func applySetters(ctx context.Context, r *run) error {
	values, err := readSetters(r.config, "ApplySetters")
	if err != nil {
		return err
	}
	s := &setter{run: r, values: values, used: map[string]bool{}}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.walk(ctx, o, o.root, nil, nil); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !s.used[name] {
			r.note("no value names the setter %s", name)
		}
	}
	return nil
}

// settersConfig is the function's own kind.
type settersConfig struct {
	head    `yaml:",inline"`
	Setters map[string]string `yaml:"setters"`
}

func readSetters(c *config, kind string) (map[string]string, error) {
	if c == nil {
		return nil, errNoConfig
	}
	read := settersConfig{Setters: c.data}
	if c.own != nil {
		if err := c.decode(&read, kind); err != nil {
			return nil, err
		}
	}
	if len(read.Setters) == 0 {
		return nil, errors.New("there are no setters")
	}
	return read.Setters, nil
}

// setter walks over objects.
type setter struct {
	*run
	values map[string]string
	used   map[string]bool
}

// walk looks at n and at what is below it. Its key is nil for an element of a list. Nobody keeps the path.
func (s *setter) walk(ctx context.Context, o *object, n, key *yaml.Node, path []string) error {
	switch n.Kind {
	case yaml.ScalarNode:
		return s.scalar(ctx, o, n, key, path)
	case yaml.SequenceNode:
		if err := s.list(o, n, key, path); err != nil {
			return err
		}
		for i, element := range n.Content {
			if err := s.walk(ctx, o, element, nil, append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := s.walk(ctx, o, n.Content[i+1], n.Content[i], append(path, n.Content[i].Value)); err != nil {
				return err
			}
		}
	default: // There are no aliases in objects.
	}
	return nil
}

// pattern is the one in a comment, if it names any setter that there is a value for.
func (s *setter) pattern(o *object, comment string, path []string) (pattern, bool, error) {
	comment = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(comment), "#"))
	comment, found := strings.CutPrefix(comment, setterMark)
	if !found {
		return nil, false, nil
	}
	p, err := parsePattern(strings.TrimSpace(comment))
	if err != nil {
		return nil, false, o.fail(path, err)
	}
	touched := false
	for _, name := range p.names() {
		if _, given := s.values[name]; given {
			touched, s.used[name] = true, true
		}
	}
	return p, touched, nil
}

// scalar sets a single value.
func (s *setter) scalar(ctx context.Context, o *object, n, key *yaml.Node, path []string) error {
	comment := n.LineComment
	beside := comment == "" && isNull(n) && key != nil && !s.compat
	if beside {
		comment = key.LineComment // Where there is no value, the comment stands behind the key.
	}
	p, touched, err := s.pattern(o, comment, path)
	if err != nil || !touched {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if name, alone := p.single(); beside && alone && listIn(s.values[name]) != nil {
		return s.setList(o, n, key, path, s.values[name])
	}
	current := n.Value
	if isNull(n) {
		current = ""
	}
	fill := p.fill
	if s.compat {
		fill = p.catalogueFill
	}
	value, err := fill(s.values, current)
	if err != nil {
		return o.fail(path, err)
	}
	if value == current && !isNull(n) {
		return nil
	}
	if err := s.room.take(int64(len(value)) - int64(len(n.Value))); err != nil {
		return o.fail(path, err)
	}
	if beside {
		n.LineComment, key.LineComment = key.LineComment, ""
	}
	if s.compat {
		catalogueType(n, value)
	} else {
		typed(o, n, path, value)
	}
	s.changed++
	return nil
}

// typed writes the value as what it is to be: what was quoted stays a string, and so does a field that Kubernetes wants one in;
// elsewhere a number becomes a number.
func typed(o *object, n *yaml.Node, path []string, value string) {
	n.Value = value
	switch {
	case n.Style&yaml.TaggedStyle != 0:
	case strings.ContainsRune(value, '\n') && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0:
		// The comment stays on the line of the value.
		n.Tag, n.Style = tagString, yaml.DoubleQuotedStyle
	case isQuoted(n):
		n.Tag = tagString
	case value == "", wantsText(o, path) && needsQuotes(value):
		n.Tag, n.Style = tagString, yaml.DoubleQuotedStyle
	case resolved(value) != tagString:
		n.Tag = resolved(value)
	default:
		wasBool := n.ShortTag() == tagBool
		n.Tag = tagString
		if needsQuotes(value) && !wasBool {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
}

// list sets all elements of a list. The comment stands behind its key, or behind the brackets.
func (s *setter) list(o *object, n, key *yaml.Node, path []string) error {
	comment := n.LineComment
	if comment == "" && key != nil {
		comment = key.LineComment
	}
	p, touched, err := s.pattern(o, comment, path)
	if err != nil || !touched {
		return err
	}
	name, alone := p.single()
	if !alone {
		return o.fail(path, errors.New("a list can be set by one setter alone, with nothing around it"))
	}
	return s.setList(o, n, key, path, s.values[name])
}

// listIn is the list that the value of a setter is, nil for what is none.
func listIn(value string) *yaml.Node {
	read := yaml.Node{}
	if yaml.Unmarshal([]byte(value), &read) != nil || len(read.Content) != 1 || read.Content[0].Kind != yaml.SequenceNode {
		return nil
	}
	return read.Content[0]
}

// setList makes n the list that the value is. An empty value is an empty list.
func (s *setter) setList(o *object, n, key *yaml.Node, path []string, value string) error {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: tagList}
	if strings.TrimSpace(value) != "" {
		read := listIn(value)
		if read == nil {
			return o.fail(path, errors.New("the value of the setter is no list"))
		}
		if hasAlias(read) {
			return o.fail(path, errors.New("the value of the setter has aliases"))
		}
		list = copyNode(read)
	}
	if n.Kind == yaml.SequenceNode && sameNode(n, list) {
		return nil
	}
	if err := s.room.put(n, list); err != nil {
		return o.fail(path, err)
	}
	flow := !s.compat && n.Kind == yaml.SequenceNode && n.Style&yaml.FlowStyle != 0 && (len(n.Content) > 0 || key == nil)
	n.Kind, n.Tag, n.Value, n.Content, n.Style = yaml.SequenceNode, tagList, "", list.Content, 0
	switch {
	case len(list.Content) == 0 || flow:
		n.Style = yaml.FlowStyle
		if key != nil && n.LineComment == "" {
			n.LineComment, key.LineComment = key.LineComment, ""
		}
	case key != nil && n.LineComment != "":
		n.LineComment, key.LineComment = "", n.LineComment
	}
	s.changed++
	return nil
}
