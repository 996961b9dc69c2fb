package script

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// resourceList is what ctx.resource_list is, and the items in it in their order.
func (m *machine) resourceList(s Script) (list *starlark.Dict, given map[starlark.Value]int, err error) {
	given = map[starlark.Value]int{}
	items := make([]starlark.Value, 0, len(s.Items))
	for i, node := range s.Items {
		item, err := m.value(node, maxDepth)
		if err != nil {
			return nil, nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		items = append(items, item)
		given[item] = i
	}
	list = starlark.NewDict(5)
	set := func(key string, value starlark.Value) {
		if err == nil {
			err = list.SetKey(starlark.String(key), value)
		}
	}
	set("apiVersion", starlark.String("config.kubernetes.io/v1"))
	set("kind", starlark.String("ResourceList"))
	set("items", starlark.NewList(items))
	config := starlark.Value(starlark.NewDict(0))
	if s.Config != nil {
		if config, err = m.value(s.Config, maxDepth); err != nil {
			return nil, nil, fmt.Errorf("functionConfig: %w", err)
		}
	}
	set("functionConfig", config)
	return list, given, err
}

// value is what a node says.
func (m *machine) value(n *yaml.Node, depth int) (starlark.Value, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%w: %w", ErrLimit, errDeep)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return m.dict(n, depth)
	case yaml.SequenceNode:
		if err := m.take(perList + perValue*int64(len(n.Content))); err != nil {
			return nil, err
		}
		elements := make([]starlark.Value, 0, len(n.Content))
		for _, element := range n.Content {
			below, err := m.value(element, depth-1)
			if err != nil {
				return nil, err
			}
			elements = append(elements, below)
		}
		return starlark.NewList(elements), nil
	case yaml.ScalarNode:
		return scalar(n), m.take(2 * perValue)
	default:
		return nil, errors.New("an alias is no value")
	}
}

func (m *machine) dict(n *yaml.Node, depth int) (*starlark.Dict, error) {
	if err := m.take(perDict + perEntry*int64(len(n.Content)/2)); err != nil {
		return nil, err
	}
	made := starlark.NewDict(len(n.Content) / 2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind != yaml.ScalarNode {
			return nil, errors.New("a key is no text")
		}
		below, err := m.value(n.Content[i+1], depth-1)
		if err != nil {
			return nil, err
		}
		if err := made.SetKey(starlark.String(n.Content[i].Value), below); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// scalar is what a single value says to Kubernetes: what is no null, number or bool is a text.
func scalar(n *yaml.Node) starlark.Value {
	switch n.ShortTag() {
	case "!!null":
		return starlark.None
	case "!!bool":
		return starlark.Bool(strings.EqualFold(n.Value, "true"))
	case "!!int":
		if len(n.Value) > maxBits+2 {
			break // Reading it would take the square of its length.
		}
		if number, ok := new(big.Int).SetString(strings.ReplaceAll(n.Value, "_", ""), 0); ok && number.BitLen() <= maxBits {
			return starlark.MakeBigInt(number)
		}
	case "!!float":
		var number float64
		if n.Decode(&number) == nil {
			return starlark.Float(number)
		}
	}
	return starlark.String(n.Value)
}

// outcome reads what the script left in the list.
func (m *machine) outcome(list *starlark.Dict, given map[starlark.Value]int) (Outcome, error) {
	made := Outcome{Printed: m.printed}
	for _, key := range []string{"items", "results"} {
		value, found, _ := list.Get(starlark.String(key)) // A text can be looked for.
		if !found || value == starlark.None {
			continue
		}
		elements, ok := value.(*starlark.List)
		if !ok {
			return made, fmt.Errorf("resource_list[%q] is no list, but of type %s", key, value.Type())
		}
		for i := range elements.Len() {
			if err := m.ended(&made, key, elements.Index(i), given); err != nil {
				return made, fmt.Errorf("resource_list[%q][%d]: %w", key, i, err)
			}
		}
	}
	return made, nil
}

// ended adds an element to what the script made.
func (m *machine) ended(to *Outcome, key string, element starlark.Value, given map[starlark.Value]int) error {
	node, err := m.node(element, maxDepth)
	switch {
	case err != nil:
		return err
	case node.Kind != yaml.MappingNode:
		return errors.New("is no map")
	case key == "items":
		from, found := given[element]
		if !found {
			from = -1
		}
		to.Items = append(to.Items, Item{From: from, Node: node})
		return nil
	}
	read := struct {
		Severity string `yaml:"severity"`
		Message  string `yaml:"message"`
	}{}
	if err := node.Decode(&read); err != nil {
		return errors.New("is no result: it has a severity and a message, both texts")
	}
	to.Results = append(to.Results, Result{Severity: read.Severity, Message: read.Message})
	return nil
}

// node is the value as YAML. A text has no style: who writes it knows which it needs.
func (m *machine) node(value starlark.Value, depth int) (*yaml.Node, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%w: %w", ErrLimit, errDeep)
	}
	if err := m.take(perNode); err != nil {
		return nil, err
	}
	single := func(tag, text string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, nil
	}
	switch value := value.(type) {
	case starlark.NoneType:
		return single("!!null", "null")
	case starlark.Bool:
		return single("!!bool", strconv.FormatBool(bool(value)))
	case starlark.Int:
		return single("!!int", value.String())
	case starlark.Float:
		return single("!!float", floatText(float64(value)))
	case starlark.String:
		return single("!!str", string(value))
	case *starlark.Dict:
		made := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, item := range value.Items() {
			key, ok := starlark.AsString(item[0])
			if !ok {
				return nil, fmt.Errorf("a key is of type %s, and not a string", item[0].Type())
			}
			below, err := m.node(item[1], depth-1)
			if err != nil {
				return nil, err
			}
			made.Content = append(made.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, below)
		}
		return made, nil
	case *starlark.List, starlark.Tuple:
		made := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		return made, each(value, func(element starlark.Value) error {
			below, err := m.node(element, depth-1)
			made.Content = append(made.Content, below)
			return err
		})
	default:
		return nil, fmt.Errorf("a value of type %s is nothing that YAML has", value.Type())
	}
}

// floatText is a number that is read as one with a fraction.
func floatText(number float64) string {
	text := strconv.FormatFloat(number, 'g', -1, 64)
	switch {
	case number != number:
		return ".nan"
	case strings.HasSuffix(text, "Inf"):
		return strings.Replace(strings.Replace(text, "+Inf", ".inf", 1), "-Inf", "-.inf", 1)
	case !strings.ContainsAny(text, ".e"):
		return text + ".0"
	default:
		return text
	}
}
