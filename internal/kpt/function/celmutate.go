package function

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// celMutate sets fields to what expressions make, or takes them out. Each mutation sees what those before it have left.
func celMutate(ctx context.Context, r *run) error {
	read := celMutations{}
	if err := r.readCEL(&read, "CELMutate", func(data map[string]string) {
		read.Mutations = []celMutation{{
			Match: data["match"], Path: data["path"], Expression: data["expression"], Delete: data["delete"] == "true",
		}}
	}, "match", "path", "expression", "delete"); err != nil {
		return err
	}
	if len(read.Mutations) == 0 {
		return errors.New("there are no mutations")
	}
	c, err := newCalculator(ctx, r, read.Params)
	if err != nil {
		return err
	}
	defer c.end()
	for i := range read.Mutations {
		if err := c.mutate(&read.Mutations[i]); err != nil {
			return inField(fmt.Sprintf("mutations[%d]", i), err)
		}
	}
	return nil
}

// celMutations is the function's own kind.
type celMutations struct {
	head      `yaml:",inline"`
	Params    map[string]any `yaml:"params"`
	Mutations []celMutation  `yaml:"mutations"`
}

// celMutation is what becomes of the fields at a path, in objects that it is for.
type celMutation struct {
	Match      string `yaml:"match"`
	Path       string `yaml:"path"`
	Expression string `yaml:"expression"`
	Delete     bool   `yaml:"delete"`
}

// mutate goes through all objects.
func (c *calculator) mutate(m *celMutation) error {
	match, err := c.condition("match", m.Match)
	if err != nil {
		return err
	}
	path, err := parsePath(m.Path)
	if err != nil {
		return err
	}
	var expr *formula
	switch {
	case m.Delete && m.Expression != "":
		return errors.New("there are both an expression and delete")
	case !m.Delete:
		if expr, err = c.compile("expression", m.Expression, nil); err != nil {
			return err
		}
	}
	for _, o := range c.objects() {
		applies, err := c.holds(match, o)
		if err == nil && applies {
			if m.Delete {
				err = c.drop(o, path)
			} else {
				err = c.fill(o, path, expr)
			}
		}
		if err != nil {
			return o.failAt(m.Path, err)
		}
	}
	return nil
}

// fill sets the fields that the path leads to. Names that are missing behind its last list are made; nothing is added to lists.
func (c *calculator) fill(o *object, path fieldPath, expr *formula) error {
	// Expressions see what there was before any field was made.
	if err := c.look(expr, o); err != nil {
		return err
	}
	defer c.forget(o)
	found, err := path.open(c.run, o)
	if err != nil {
		return err
	}
	for _, at := range found {
		if isOrigin(o, at.path) {
			return errOrigin
		}
		result, err := c.value(expr, o, at.node)
		if err != nil {
			return err
		}
		if result.Type() == types.NullType {
			return fmt.Errorf("the expression %q is null; delete takes a field out", expr.program.Text)
		}
		wanted, err := c.node(result)
		if err != nil {
			return err
		}
		if err := c.become(o, at, wanted); err != nil {
			return err
		}
	}
	return isWhole(o)
}

// become makes the field say what is wanted. A text keeps its quotes.
func (c *calculator) become(o *object, at location, wanted *yaml.Node) error {
	respell(at.node, wanted)
	if sameValue(at.node, wanted) {
		return nil
	}
	if wanted.Tag == tagString && at.node.Kind == yaml.ScalarNode {
		return c.putString(o, at, wanted.Value)
	}
	if err := c.room.put(at.node, wanted); err != nil {
		return err
	}
	quote(wanted)
	overwrite(at.node, wanted)
	c.changed++
	return nil
}

// drop takes out what the path leads to.
func (c *calculator) drop(o *object, path fieldPath) error {
	last := path[len(path)-1]
	for _, at := range path[:len(path)-1].there(o) {
		kept := make([]*yaml.Node, 0, len(at.node.Content))
		gone := last.from(at)
		isGone := map[*yaml.Node]bool{}
		for _, one := range gone {
			if isOrigin(o, one.path) {
				return errOrigin
			}
			isGone[one.node] = true
		}
		if len(gone) == 0 {
			continue
		}
		for i, n := range at.node.Content {
			value := n
			if at.node.Kind == yaml.MappingNode {
				value = at.node.Content[i|1] // A key goes with its value.
			}
			if !isGone[value] {
				kept = append(kept, n)
			}
		}
		at.node.Content = kept
		c.changed += len(gone)
		c.forget(o)
	}
	return isWhole(o)
}

// isWhole fails for what is no object any more.
func isWhole(o *object) error {
	if o.kind() == "" || o.name() == "" || o.resource.IsKptfile() {
		return errors.New("what is left is no object of the package: it needs a kind, which is not Kptfile, and a name")
	}
	return nil
}
