package function

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// overwrite makes n say what the other says, and nothing else. What says so already stays as it is written, and so do comments
// and the order of keys.
func overwrite(n, by *yaml.Node) {
	switch {
	case sameValue(n, by):
	case n.Kind == yaml.MappingNode && by.Kind == yaml.MappingNode:
		overwriteMap(n, by)
	case n.Kind == yaml.SequenceNode && by.Kind == yaml.SequenceNode:
		both := min(len(n.Content), len(by.Content))
		for i := range both {
			overwrite(n.Content[i], by.Content[i])
		}
		n.Content = append(n.Content[:both], by.Content[both:]...)
	default:
		n.Kind, n.Tag, n.Value, n.Style, n.Content = by.Kind, by.Tag, by.Value, by.Style, by.Content
	}
}

func overwriteMap(n, by *yaml.Node) {
	kept := make([]*yaml.Node, 0, len(by.Content))
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := kpt.Lookup(by, n.Content[i].Value); value != nil {
			overwrite(n.Content[i+1], value)
			kept = append(kept, n.Content[i], n.Content[i+1])
		}
	}
	for i := 0; i+1 < len(by.Content); i += 2 {
		if kpt.Lookup(n, by.Content[i].Value) == nil {
			kept = append(kept, by.Content[i], by.Content[i+1])
		}
	}
	n.Content = kept
}

// sameValue is sameNode where the order of keys makes no difference.
func sameValue(a, b *yaml.Node) bool {
	if a.Kind != yaml.MappingNode || b.Kind != yaml.MappingNode {
		return a.Kind == b.Kind && len(a.Content) == len(b.Content) &&
			(a.Kind != yaml.ScalarNode || a.Value == b.Value && a.ShortTag() == b.ShortTag()) &&
			slices.EqualFunc(a.Content, b.Content, sameValue)
	}
	if len(a.Content) != len(b.Content) {
		return false
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		if other := kpt.Lookup(b, a.Content[i].Value); other == nil || !sameValue(a.Content[i+1], other) {
			return false
		}
	}
	return true
}

// removeKey takes keys out of a map.
func removeKey(n *yaml.Node, keys ...string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			n.Content = slices.Delete(n.Content, i, i+2)
		}
	}
}
