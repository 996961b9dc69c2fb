package build

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/transport"
)

// converter makes values of YAML trees, strictly and within the budget of one build.
type converter struct {
	vars   *substitution
	simple bool // leave to a worker what takes much memory
	// plain is spent by objects as they are written, replaced by those that are read once more with their variables.
	plain, replaced budget
	spent           *budget // that of the two which is spent now
	aliases         int     // in the current document
	secret          bool    // the current document is a Secret, of which errors quote nothing
}

// budget is what was made of all objects so far.
type budget struct {
	values int
	text   int64
}

func newConverter(vars map[string]string, simple bool) *converter {
	return &converter{vars: newSubstitution(vars, simple), simple: simple}
}

// used are the variables that objects asked for.
func (c *converter) used() []string {
	if c.vars == nil {
		return nil
	}
	return slices.Collect(maps.Keys(c.vars.used))
}

// The label or annotation that keeps variables of an object as they are, as Flux spells it.
const (
	substituteKey      = "kustomize.toolkit.fluxcd.io/substitute"
	substituteDisabled = "disabled"
)

// object makes a document's object, with its variables replaced unless it says otherwise.
func (c *converter) object(d document) (map[string]any, error) {
	object, err := c.convert(d, &c.plain)
	if err != nil || c.vars == nil || keepsVariables(object) {
		return object, err
	}
	return c.convert(d, &c.replaced)
}

func keepsVariables(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return labels[substituteKey] == substituteDisabled || annotations[substituteKey] == substituteDisabled
}

func (c *converter) convert(d document, spent *budget) (map[string]any, error) {
	c.aliases, c.secret, c.spent = 0, isSecret(d.node), spent
	made, err := c.value(d.node, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.origin, err)
	}
	object, ok := made.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: %w: it is no mapping", d.origin, ErrDocument)
	}
	return object, nil
}

// isSecret says whether the document is a Secret, before it is known to be an object at all.
func isSecret(node *yaml.Node) bool {
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "kind" && node.Content[i+1].Value == "Secret" {
			return true
		}
	}
	return false
}

func (c *converter) value(node *yaml.Node, depth int) (any, error) {
	if c.spent.values++; c.spent.values > maxValues {
		return nil, fmt.Errorf("%w: more than %d values", ErrLimit, maxValues)
	}
	if c.simple && c.spent.values > maxSeparators {
		return nil, errHeavy
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: line %d: nested deeper than %d", ErrLimit, node.Line, maxDepth)
	}
	switch node.Kind {
	case yaml.DocumentNode:
		if len(node.Content) == 1 {
			return c.value(node.Content[0], depth)
		}
	case yaml.AliasNode:
		if c.aliases++; c.aliases > maxAliases {
			return nil, fmt.Errorf("%w: more than %d aliases", ErrLimit, maxAliases)
		}
		return c.value(node.Alias, depth+1)
	case yaml.MappingNode:
		return c.mapping(node, depth)
	case yaml.SequenceNode:
		return c.sequence(node, depth)
	case yaml.ScalarNode:
		return c.scalar(node)
	default:
	}
	return nil, fmt.Errorf("%w: line %d: not YAML", ErrDocument, node.Line)
}

func (c *converter) sequence(node *yaml.Node, depth int) (any, error) {
	if tag := node.ShortTag(); tag != yaml.NodeTagSeq {
		return nil, unknownTag(node, tag)
	}
	made := make([]any, 0, len(node.Content))
	for _, item := range node.Content {
		value, err := c.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		made = append(made, value)
	}
	return made, nil
}

func (c *converter) mapping(node *yaml.Node, depth int) (any, error) {
	if tag := node.ShortTag(); tag != yaml.NodeTagMap {
		return nil, unknownTag(node, tag)
	}
	made := make(map[string]any, len(node.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == yaml.MergeTag {
			merges = append(merges, value)
			continue
		}
		name, err := c.key(key)
		if err != nil {
			return nil, err
		}
		if _, twice := made[name]; twice {
			return nil, fmt.Errorf("%w: line %d: key %s twice", ErrDocument, key.Line, transport.PrintableQuoted(key.Value))
		}
		if made[name], err = c.value(value, depth+1); err != nil {
			return nil, err
		}
	}
	for _, from := range merges {
		if err := c.merge(made, from, depth); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// key is the text of a key, as it is written: numbers and booleans are keys like others.
func (c *converter) key(node *yaml.Node) (string, error) {
	if node.Kind == yaml.AliasNode {
		if c.aliases++; c.aliases > maxAliases {
			return "", fmt.Errorf("%w: more than %d aliases", ErrLimit, maxAliases)
		}
		node = node.Alias
	}
	if node.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("%w: line %d: a key is no scalar", ErrDocument, node.Line)
	}
	text, _, err := c.content(node)
	return text, err
}

// merge adds what "<<" brings: a mapping, or several of which the first wins, and never over a key that is there.
func (c *converter) merge(into map[string]any, from *yaml.Node, depth int) error {
	value, err := c.value(from, depth+1)
	if err != nil {
		return err
	}
	sources, several := value.([]any)
	if !several {
		sources = []any{value}
	}
	for _, one := range sources {
		fields, ok := one.(map[string]any)
		if !ok {
			return fmt.Errorf("%w: line %d: only mappings can be merged", ErrDocument, from.Line)
		}
		for name, field := range fields {
			if _, there := into[name]; !there {
				into[name] = field
			}
		}
	}
	return nil
}

// content is a scalar's text, variables replaced, and whether any were.
func (c *converter) content(node *yaml.Node) (text string, replaced bool, err error) {
	text = node.Value
	if c.spent == &c.replaced && strings.Contains(text, "$") {
		if text, err = c.vars.expand(text); err != nil {
			if c.secret && errors.Is(err, errExpression) {
				err = errExpression
			}
			return "", false, fmt.Errorf("line %d: %w", node.Line, err)
		}
		replaced = text != node.Value
	}
	if c.spent.text += int64(len(text)); c.spent.text > maxText {
		return "", false, fmt.Errorf("%w: more than %d bytes of text", ErrLimit, maxText)
	}
	return text, replaced, nil
}

func (c *converter) scalar(node *yaml.Node) (any, error) {
	text, replaced, err := c.content(node)
	if err != nil {
		return nil, err
	}
	tag := node.ShortTag()
	const written = yaml.Style(0)
	if replaced && node.Style == written && tag == yaml.NodeTagString {
		// Neither quoted nor tagged: what the variables made of it is read like any text at its place, but is one scalar.
		tag = (&yaml.Node{Kind: yaml.ScalarNode, Value: text}).ShortTag()
	}
	shown := transport.PrintableQuoted(text)
	switch {
	case c.secret:
		shown = "of the Secret"
	case replaced:
		// What a variable stands for may come from a Secret.
		shown = "made of " + transport.PrintableQuoted(node.Value)
	}
	switch tag {
	case yaml.NodeTagString, "!!timestamp", yaml.MergeTag:
		return text, nil
	case yaml.NodeTagNull:
		return nil, nil //nolint:nilnil // That is what null is.
	case yaml.NodeTagBool, yaml.NodeTagInt, yaml.NodeTagFloat:
		value, err := read(tag, text, shown)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrDocument, node.Line, err)
		}
		return value, nil
	}
	return nil, unknownTag(node, tag)
}

func unknownTag(node *yaml.Node, tag string) error {
	return fmt.Errorf("%w: line %d: tag %s", ErrDocument, node.Line, transport.PrintableQuoted(tag))
}

// read makes the boolean or the number that the text is, which errors name as shown.
func read(tag, text, shown string) (any, error) {
	plain := strings.ReplaceAll(text, "_", "")
	switch {
	case tag == yaml.NodeTagBool && strings.EqualFold(text, "true"):
		return true, nil
	case tag == yaml.NodeTagBool && strings.EqualFold(text, "false"):
		return false, nil
	case tag == yaml.NodeTagBool:
		return nil, fmt.Errorf("value %s is neither true nor false", shown)
	case tag == yaml.NodeTagFloat && strings.ContainsAny(plain, ".eE"):
		number, err := strconv.ParseFloat(plain, 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return nil, fmt.Errorf("number %s does not exist in JSON; quote it if it is text", shown)
		}
		return number, nil
	}
	// YAML reads integers without bounds, and rounding one would make another of it.
	number, err := strconv.ParseInt(plain, 0, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s has no room in 64 bits; quote it if it is text", shown)
	}
	return number, nil
}
