package merge

import (
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// resolved follows an alias to what it stands for.
func resolved(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// valueOf is what a map has under the key, nil if it has nothing there or is no map.
func valueOf(node *yaml.Node, key string) *yaml.Node {
	node = resolved(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if name := resolved(node.Content[i]); name.Kind == yaml.ScalarNode && name.Value == key {
			return resolved(node.Content[i+1])
		}
	}
	return nil
}

// textOf is the scalar that a map has under the key, and "" for anything else.
func textOf(node *yaml.Node, key string) string {
	value := valueOf(node, key)
	if value == nil || value.Kind != yaml.ScalarNode || isNull(value) {
		return ""
	}
	return value.Value
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == yaml.NodeTagNull
}

// contentOf are the nodes in a map or a list, none for what is missing.
func contentOf(node *yaml.Node) []*yaml.Node {
	if node == nil {
		return nil
	}
	return node.Content
}

// copied is a node that shares nothing with the one it is made from, and has no place in any text yet.
func copied(node *yaml.Node) *yaml.Node {
	if node == nil {
		return nil
	}
	return copiedInto(node, false)
}

// copiedInto says whether the copy stands between braces. There the library writes an empty text for a null that is not spelt out.
func copiedInto(node *yaml.Node, flow bool) *yaml.Node {
	fresh := *node
	fresh.Anchor, fresh.Line, fresh.Column = "", 0, 0
	fresh.Content = nil
	if flow && node.Value == "" && isNull(node) {
		fresh.Value = "null"
	}
	for _, child := range node.Content {
		fresh.Content = append(fresh.Content, copiedInto(child, flow || node.Style&yaml.FlowStyle != 0))
	}
	return &fresh
}
