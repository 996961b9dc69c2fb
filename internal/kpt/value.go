package kpt

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// become makes the node say the value, one of JSON's. What of it says so already stays as it is, comments, order and style
// with it; keys that are new stand at the end, in the order of their bytes.
func become(node *yaml.Node, value any) *yaml.Node {
	have := resolve(node)
	switch value := value.(type) {
	case map[string]any:
		if have == nil || have.Kind != yaml.MappingNode || node != have {
			return becomeMap(newMap(), value)
		}
		return becomeMap(node, value)
	case []any:
		if have == nil || have.Kind != yaml.SequenceNode || node != have {
			return becomeList(newList(), value)
		}
		return becomeList(node, value)
	}
	wanted := newValue(value)
	if have != nil && have.Kind == yaml.ScalarNode {
		if have.ShortTag() == wanted.ShortTag() && have.Value == wanted.Value {
			return node
		}
		wanted.HeadComment, wanted.LineComment, wanted.FootComment = node.HeadComment, node.LineComment, node.FootComment
	}
	return wanted
}

func becomeMap(node *yaml.Node, value map[string]any) *yaml.Node {
	seen := map[string]bool{}
	kept := []*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		wanted, found := value[key.Value]
		if key.Kind != yaml.ScalarNode || !found || seen[key.Value] {
			continue
		}
		seen[key.Value] = true
		kept = append(kept, key, become(node.Content[i+1], wanted))
	}
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if !seen[key] {
			kept = append(kept, newScalar(key), become(nil, value[key]))
		}
	}
	node.Content = kept
	return node
}

func becomeList(node *yaml.Node, value []any) *yaml.Node {
	elements := make([]*yaml.Node, len(value))
	for i, wanted := range value {
		if i < len(node.Content) {
			elements[i] = become(node.Content[i], wanted)
		} else {
			elements[i] = become(nil, wanted)
		}
	}
	node.Content = elements
	return node
}

// newValue is a scalar of JSON.
func newValue(value any) *yaml.Node {
	switch value := value.(type) {
	case string:
		return newScalar(value)
	case bool:
		text := "false"
		if value {
			text = "true"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagBool, Value: text}
	case json.Number:
		tag := yaml.NodeTagInt
		if strings.ContainsAny(value.String(), ".eE") {
			tag = yaml.NodeTagFloat
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value.String()}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagNull, Value: "null"}
	}
}
