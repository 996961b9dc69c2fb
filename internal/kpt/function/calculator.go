package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/expression"
	"sluice.dev/sluice/internal/memory"
)

// The names that expressions may use.
const (
	celObject    = "object"
	celResources = "resources"
	celParams    = "params"
	celValue     = "value"
)

const (
	// maxCost bounds one evaluation of an expression, and maxCosts all of one entry's, in CEL's units.
	maxCost  = 1_000_000
	maxCosts = 50_000_000
)

var errCost = errors.New("the expressions take too much")

// inField names the field of the configuration where an error is, unless it names one of an object already.
func inField(field string, err error) error {
	if known, ok := errors.AsType[*Error](err); ok && known.Resource != "" {
		return err
	}
	return &Error{Field: field, Err: err}
}

// readCEL reads the own kind into a struct, or the values of a ConfigMap by a function.
func (r *run) readCEL(into any, kind string, data func(map[string]string), keys ...string) error {
	switch {
	case r.config == nil:
		return errNoConfig
	case r.config.own != nil:
		return r.config.decode(into, kind)
	default:
		data(r.config.data)
		return r.config.only(keys...)
	}
}

// calculator evaluates expressions on the objects of a run. Objects for tools are not among them.
type calculator struct {
	*run
	ctx    context.Context //nolint:containedctx // It is that of the run, for which a calculator is made.
	env    *expression.Env
	params map[string]any
	// known is what objects say, and all that of all of them, as long as nothing is changed.
	known map[*object]any
	all   []any
	spent uint64
	drawn int64
}

func newCalculator(ctx context.Context, r *run, params map[string]any) (*calculator, error) {
	env, err := expression.New(maxCost, expression.Texts())
	if err != nil {
		return nil, err
	}
	if params == nil {
		params = map[string]any{}
	}
	return &calculator{run: r, ctx: ctx, env: env, params: params, known: map[*object]any{}}, nil
}

// end gives back the memory that was drawn.
func (c *calculator) end() { memory.Return(c.ctx, c.drawn) }

// objects are those that expressions are about.
func (c *calculator) objects() []*object { return forCluster(c.run.objects) }

// forCluster leaves out objects for tools.
func forCluster(objects []*object) []*object {
	return slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return o.resource.IsLocalConfig() })
}

// formula is an expression and what it speaks of.
type formula struct {
	program *expression.Program
	names   []string
}

func (f *formula) speaksOf(name string) bool { return slices.Contains(f.names, name) }

// compile compiles the expression of a field; its result is of the type, or of any for nil.
func (c *calculator) compile(field, text string, result *cel.Type) (*formula, error) {
	program, err := c.env.Compile(text, result, celObject, celResources, celParams, celValue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	// With no names given, it says which it uses.
	uses, err := c.env.Compile(text, result)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &formula{program: program, names: uses.Names}, nil
}

// condition compiles an expression that need not be there.
func (c *calculator) condition(field, text string) (*formula, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil //nolint:nilnil // No condition is one that always holds.
	}
	return c.compile(field, text, cel.BoolType)
}

// holds evaluates a condition.
func (c *calculator) holds(f *formula, o *object) (bool, error) {
	if f == nil {
		return true, nil
	}
	result, err := c.value(f, o, nil)
	if err != nil {
		return false, err
	}
	holds, ok := result.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the expression %q: %w: neither true nor false", f.program.Text, expression.ErrResult)
	}
	return bool(holds), nil
}

// value evaluates an expression, of an object that may be nil and of the field's value, which may be nil as well.
func (c *calculator) value(f *formula, o *object, field *yaml.Node) (ref.Val, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.look(f, o); err != nil {
		return nil, err
	}
	values := map[string]any{celParams: c.params, celValue: nil, celResources: c.all}
	if known, found := c.known[o]; found {
		values[celObject] = known
	}
	if field != nil && f.speaksOf(celValue) {
		values[celValue] = plainValue(field)
	}
	result, cost, err := f.program.Eval(values)
	if c.spent += cost; c.spent > maxCosts || cost >= maxCost {
		return nil, fmt.Errorf("%w: the expression %q, or all of them together", errCost, f.program.Text)
	}
	if err != nil {
		hint := ""
		if expression.IsMissing(err) {
			hint = "; has(…) asks whether a field is there"
		}
		return nil, fmt.Errorf("the expression %q: %w%s", f.program.Text, err, hint)
	}
	return result, nil
}

// look reads what the expression speaks of.
func (c *calculator) look(f *formula, o *object) error {
	if o != nil && f.speaksOf(celObject) {
		if _, err := c.said(o); err != nil {
			return err
		}
	}
	if f.speaksOf(celResources) {
		_, err := c.everything()
		return err
	}
	return nil
}

// said is what the object says. It is read once, as long as it is not forgotten.
func (c *calculator) said(o *object) (any, error) {
	if known, found := c.known[o]; found {
		return known, nil
	}
	// A value takes about as much as a node, and its text is the node's.
	cost := perNode * (1 + size(o.root)/8)
	if err := memory.Draw(c.ctx, cost); err != nil {
		return nil, err
	}
	c.drawn += cost
	c.known[o] = plainValue(o.root)
	return c.known[o], nil
}

// everything is what all objects say.
func (c *calculator) everything() ([]any, error) {
	if c.all != nil {
		return c.all, nil
	}
	all := []any{}
	for _, o := range forCluster(c.seen) {
		one, err := c.said(o)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	c.all = all
	return all, nil
}

// forget is for an object that was changed.
func (c *calculator) forget(o *object) {
	delete(c.known, o)
	c.all = nil
}

// plainValue is what a node says to Kubernetes, in Go's types. What is no null, number or bool is a text.
func plainValue(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		made := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			made[n.Content[i].Value] = plainValue(n.Content[i+1])
		}
		return made
	case yaml.SequenceNode:
		made := make([]any, 0, len(n.Content))
		for _, element := range n.Content {
			made = append(made, plainValue(element))
		}
		return made
	default:
		return plainScalar(n)
	}
}

func plainScalar(n *yaml.Node) any {
	var whole int64
	var number float64
	switch tag := n.ShortTag(); {
	case tag == tagNull:
		return nil
	case tag == tagBool:
		return strings.EqualFold(n.Value, "true")
	case tag == tagInt && n.Decode(&whole) == nil:
		return whole
	case (tag == tagInt || tag == tagFloat) && n.Decode(&number) == nil:
		return number
	default:
		return n.Value
	}
}
