package function

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// createSetters writes comments behind values that are made of the values of setters, for applySetters to find. A value has to
// stand there as words of its own: the 1 of a setter is not the one in v1. What configures functions is left alone, as the
// values of setters are there by their nature; so are the Kptfiles.
func createSetters(ctx context.Context, r *run) error {
	values, err := readSetters(r.config, "CreateSetters")
	if err != nil {
		return err
	}
	c, err := newSetterCreator(r, values)
	if err != nil {
		return err
	}
	for _, o := range r.objects {
		configures, err := r.configures(o)
		if err != nil {
			return err
		}
		if configures && !r.compat || o.resource.IsKptfile() {
			continue
		}
		if err := c.object(ctx, o); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !c.used[name] {
			r.note("no value is made of the setter %s", name)
		}
	}
	return nil
}

// maxSetters bounds how many values every value of the package is compared with.
const maxSetters = 256

// setterCreator writes the comments of one run.
type setterCreator struct {
	*run
	// scalars are the longest first, so that a part of a value does not stand for all of it.
	scalars []valueOf
	lists   []listOf
	used    map[string]bool
}

// valueOf is the value of a setter.
type valueOf struct{ name, value string }

// listOf is that of one whose value is a list.
type listOf struct {
	name     string
	elements []string
}

func newSetterCreator(r *run, values map[string]string) (*setterCreator, error) {
	if len(values) > maxSetters {
		return nil, fmt.Errorf("there are %d setters, and %d are allowed", len(values), maxSetters)
	}
	c := &setterCreator{run: r, used: map[string]bool{}}
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		key := fmt.Sprintf("%q", value)
		elements, list := listElements(value)
		switch {
		case name == "" || strings.ContainsAny(name, "${} \t\n"):
			return nil, fmt.Errorf("the setter %q: a name has no spaces, and none of ${}", name)
		case value == "" || list && len(elements) == 0:
			return nil, fmt.Errorf("the setter %s: has no value to look for", name)
		case list:
			if r.compat {
				slices.Sort(elements)
			}
			key = fmt.Sprintf("%q", elements)
			c.lists = append(c.lists, listOf{name, elements})
		case strings.ContainsRune(value, '\n'):
			return nil, fmt.Errorf("the setter %s: no comment has a place behind a value of several lines", name)
		default:
			c.scalars = append(c.scalars, valueOf{name, value})
		}
		if other, taken := owners[key]; taken && !r.compat {
			return nil, fmt.Errorf("the setters %s and %s have the same value: it does not say which of them is meant", other, name)
		}
		owners[key] = name
	}
	slices.SortStableFunc(c.scalars, func(a, b valueOf) int { return len(b.value) - len(a.value) })
	return c, nil
}

// listElements are those of a setter whose value is a list of single values.
func listElements(value string) (elements []string, list bool) {
	read := listIn(value)
	if read == nil {
		return nil, false
	}
	return scalarsOf(read)
}

// scalarsOf are the elements of a list, if all of them are single values.
func scalarsOf(list *yaml.Node) (elements []string, all bool) {
	for _, element := range list.Content {
		if element.Kind != yaml.ScalarNode {
			return nil, false
		}
		elements = append(elements, element.Value)
	}
	return elements, true
}

// object looks at all values but those that say what the object is.
func (c *setterCreator) object(ctx context.Context, o *object) error {
	for i := 0; i+1 < len(o.root.Content); i += 2 {
		key := o.root.Content[i]
		if (key.Value == "apiVersion" || key.Value == "kind") && !c.compat {
			continue
		}
		if err := c.walk(ctx, o, o.root.Content[i+1], key, []string{key.Value}); err != nil {
			return err
		}
	}
	return nil
}

// walk looks at n and what is below it. Its key is nil for an element of a list. In braces and brackets there is no place for
// comments.
func (c *setterCreator) walk(ctx context.Context, o *object, n, key *yaml.Node, path []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	flow := n.Style&yaml.FlowStyle != 0
	switch n.Kind {
	case yaml.ScalarNode:
		return c.scalar(o, n, path)
	case yaml.SequenceNode:
		if done, err := c.list(o, n, key, path); done || err != nil || flow {
			return err
		}
		for i, element := range n.Content {
			if err := c.walk(ctx, o, element, nil, append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content) && !flow; i += 2 {
			if err := c.walk(ctx, o, n.Content[i+1], n.Content[i], append(path, n.Content[i].Value)); err != nil {
				return err
			}
		}
	default: // There are no aliases in objects.
	}
	return nil
}

// scalar comments a single value.
func (c *setterCreator) scalar(o *object, n *yaml.Node, path []string) error {
	if isNull(n) || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || len(n.Value) > maxRead ||
		strings.ContainsAny(n.Value, "\n\r") || strings.Contains(n.Value, "${") || strings.TrimSpace(n.Value) != n.Value {
		return nil
	}
	p := c.pattern(n.Value)
	names := p.names()
	if len(names) == 0 || len(names) > maxNames {
		return nil
	}
	return c.comment(o, n, path, p.String(), names)
}

// list comments a list that has what a setter has, in its order. In brackets the comment stands behind them.
func (c *setterCreator) list(o *object, n, key *yaml.Node, path []string) (done bool, err error) {
	if key == nil {
		return false, nil
	}
	elements, _ := scalarsOf(n)
	if c.compat {
		slices.Sort(elements)
	}
	i := slices.IndexFunc(c.lists, func(l listOf) bool { return slices.Equal(l.elements, elements) })
	if i < 0 {
		return false, nil
	}
	behind := key
	if n.Style&yaml.FlowStyle != 0 {
		behind = n
	}
	name := c.lists[i].name
	return true, c.comment(o, behind, path, "${"+name+"}", []string{name})
}

// comment writes it, unless there is another one already: what people wrote is not for a function to throw away.
func (c *setterCreator) comment(o *object, n *yaml.Node, path []string, text string, names []string) error {
	wanted := "# " + setterMark + " " + text
	for _, name := range names {
		c.used[name] = true
	}
	if n.LineComment == wanted {
		return nil
	}
	if n.LineComment != "" && !c.compat {
		if !strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(n.LineComment, "#")), setterMark) {
			c.note("%s in %s: %s: has another comment, so that %q has no place", o.resource.ID(), o.resource.File, place(path), wanted)
		}
		return nil
	}
	if err := c.room.take(int64(len(wanted)) + 1); err != nil {
		return o.fail(path, err)
	}
	n.LineComment = wanted
	c.changed++
	return nil
}

// pattern is the value with the names of setters where their values stand in it.
func (c *setterCreator) pattern(value string) pattern {
	p, literal := pattern{}, 0
	for at := 0; at < len(value); {
		i := slices.IndexFunc(c.scalars, func(v valueOf) bool {
			return c.compat && strings.HasPrefix(value[at:], v.value) || standsAt(value, v.value, at)
		})
		if i < 0 {
			at++
			continue
		}
		if at > literal {
			p = append(p, token{literal: value[literal:at]})
		}
		p = append(p, token{name: c.scalars[i].name})
		at += len(c.scalars[i].value)
		literal = at
	}
	if literal < len(value) {
		p = append(p, token{literal: value[literal:]})
	}
	return p
}

// standsAt tells whether the word stands at the place as one of its own.
func standsAt(value, word string, at int) bool {
	return strings.HasPrefix(value[at:], word) && parted(value, at) && parted(value, at+len(word))
}

// parted tells whether words part at the place: letters and digits hold together, and so do the parts of a number or a version.
func parted(value string, at int) bool {
	if at == 0 || at == len(value) {
		return true
	}
	before, after := value[at-1], value[at]
	switch {
	case inWord(before) && inWord(after):
		return false
	case before == '.' && isDigit(after):
		return at < 2 || !isDigit(value[at-2])
	case isDigit(before) && after == '.':
		return at+1 == len(value) || !isDigit(value[at+1])
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func inWord(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
