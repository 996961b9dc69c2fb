package merge

import (
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

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
