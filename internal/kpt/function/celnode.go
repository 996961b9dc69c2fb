package function

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/expression"
)

// node is the result of an expression as YAML. A few lists within each other can stand for more than a memory holds, so that it
// is counted on the way.
func (c *calculator) node(result ref.Val) (*yaml.Node, error) {
	w := writer{left: c.room.left, most: c.room.most, values: c.room.values}
	return w.node(result)
}

// writer writes down values.
type writer struct{ left, most, values int64 }

func (w *writer) node(value ref.Val) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch value := value.(type) {
	case types.Null:
		n.Tag, n.Value = tagNull, "null"
	case types.Bool:
		n.Tag, n.Value = tagBool, strconv.FormatBool(bool(value))
	case types.Int:
		n.Tag, n.Value = tagInt, strconv.FormatInt(int64(value), 10)
	case types.Uint:
		n.Tag, n.Value = tagInt, strconv.FormatUint(uint64(value), 10)
	case types.Double:
		n.Value = strconv.FormatFloat(float64(value), 'g', -1, 64)
		if n.Tag = resolved(n.Value); n.Tag == tagString {
			return nil, fmt.Errorf("%w: %s is no number that a field may have", expression.ErrResult, n.Value)
		}
	case types.String:
		n.Tag, n.Value = tagString, string(value)
	case traits.Mapper:
		return w.mapping(value)
	case traits.Lister:
		n.Kind, n.Tag = yaml.SequenceNode, tagList
		for values := value.Iterator(); values.HasNext() == types.True; {
			below, err := w.node(values.Next())
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, below)
		}
	default:
		return nil, fmt.Errorf("%w: a field cannot be of type %s", expression.ErrResult, value.Type().TypeName())
	}
	return n, w.take(n)
}

func (w *writer) take(n *yaml.Node) error {
	if w.values--; w.values < 0 {
		return fmt.Errorf("%w: there is no room for so many values", ErrTooLarge)
	}
	if w.left -= int64(len(n.Value)) + 2; w.left < 0 {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, w.most)
	}
	return nil
}

func (w *writer) mapping(value traits.Mapper) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap}
	entries := map[string]ref.Val{}
	names := []string{}
	for keys := value.Iterator(); keys.HasNext() == types.True; {
		key := keys.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("%w: a key is no string", expression.ErrResult)
		}
		names = append(names, string(name))
		entries[string(name)] = value.Get(key)
	}
	slices.SortFunc(names, strings.Compare)
	for _, name := range names {
		below, err := w.node(entries[name])
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, newText(name), below)
	}
	return n, w.take(n)
}
