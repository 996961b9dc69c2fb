package kpt

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// resolve follows an alias to what it stands for.
func resolve(node *yaml.Node) *yaml.Node {
	for hops := 0; node != nil && node.Kind == yaml.AliasNode && hops < 8; hops++ {
		node = node.Alias
	}
	return node
}

// lookup finds the value of a key in a map, nil where there is none.
func lookup(node *yaml.Node, key string) *yaml.Node {
	if i := keyIndex(node, key); i >= 0 {
		return resolve(resolve(node).Content[i+1])
	}
	return nil
}

// keyIndex is where the key stands in the content of a map, -1 where it does not.
func keyIndex(node *yaml.Node, key string) int {
	node = resolve(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if name := resolve(node.Content[i]); name.Kind == yaml.ScalarNode && name.Value == key {
			return i
		}
	}
	return -1
}

// Lookup finds what the keys lead to in maps, nil where they lead nowhere. Of an alias it is what that stands for.
func Lookup(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		node = lookup(node, key)
	}
	return resolve(node)
}

// Text is the single value that the keys lead to, "" where they lead to none.
func Text(node *yaml.Node, keys ...string) string {
	found := Lookup(node, keys...)
	if found == nil || found.Kind != yaml.ScalarNode || found.ShortTag() == yaml.NodeTagNull {
		return ""
	}
	return found.Value
}

// Elements are those of a list, and none of what is no list.
func Elements(list *yaml.Node) []*yaml.Node {
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}

// stringsAt are the keys and texts of a map.
func stringsAt(node *yaml.Node, keys ...string) map[string]string {
	found := Lookup(node, keys...)
	if found == nil || found.Kind != yaml.MappingNode || len(found.Content) == 0 {
		return nil
	}
	values := make(map[string]string, len(found.Content)/2)
	for i := 0; i+1 < len(found.Content); i += 2 {
		values[found.Content[i].Value] = Text(found.Content[i+1])
	}
	return values
}

// sure makes every key of the path a map where it is none yet, and returns the last one. What an alias stands for is copied
// first, so that its other uses do not change.
func sure(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		i := keyIndex(node, key)
		if i < 0 {
			setNode(node, key, newMap())
			i = keyIndex(node, key)
		}
		value := node.Content[i+1]
		switch {
		case value.Kind == yaml.AliasNode:
			value = yaml.CopyYNode(resolve(value))
			value.Anchor = ""
			node.Content[i+1] = value
		case value.Kind != yaml.MappingNode:
			*value = yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap, LineComment: value.LineComment}
		}
		node = value
	}
	return node
}

// setScalar makes the key say the text, and leaves it alone if it does already.
func setScalar(node *yaml.Node, key, text string) {
	i := keyIndex(node, key)
	if i < 0 {
		setNode(node, key, newScalar(text))
		return
	}
	value := node.Content[i+1]
	if found := resolve(value); found.Kind == yaml.ScalarNode && found.Value == text && found.ShortTag() == yaml.NodeTagString {
		return
	}
	fresh := newScalar(text)
	fresh.HeadComment, fresh.LineComment, fresh.FootComment = value.HeadComment, value.LineComment, value.FootComment
	if quotes := value.Style & (yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle); quotes != 0 {
		fresh.Style = quotes
	}
	node.Content[i+1] = fresh
}

// withoutAliases is a copy with no anchors and aliases in it, of at most so many nodes.
func withoutAliases(node *yaml.Node, left *int) *yaml.Node {
	same := *resolve(node)
	same.Anchor = ""
	same.Content = nil
	for _, child := range resolve(node).Content {
		if *left--; *left >= 0 {
			same.Content = append(same.Content, withoutAliases(child, left))
		}
	}
	return &same
}

// setNode puts the value under the key, in the place of what is there or at the end.
func setNode(node *yaml.Node, key string, value *yaml.Node) {
	if i := keyIndex(node, key); i >= 0 {
		node.Content[i+1] = value
		return
	}
	node.Content = append(node.Content, newScalar(key), value)
}

// insertNode puts the value under a key that is not there yet, before the first of the keys that is there, or at the end.
func insertNode(node *yaml.Node, key string, value *yaml.Node, before ...string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if slices.Contains(before, node.Content[i].Value) {
			node.Content = slices.Insert(node.Content, i, newScalar(key), value)
			return
		}
	}
	setNode(node, key, value)
}

// remove takes the key out of a map.
func remove(node *yaml.Node, key string) {
	if i := keyIndex(node, key); i >= 0 && node.Kind == yaml.MappingNode {
		node.Content = slices.Delete(node.Content, i, i+2)
	}
}

// prune takes out the maps and lists that the keys lead to, from the innermost, as far as they are empty.
func prune(node *yaml.Node, keys ...string) {
	for n := len(keys); n > 0; n-- {
		if found := Lookup(node, keys[:n]...); found == nil || len(found.Content) > 0 || found.Kind == yaml.ScalarNode {
			return
		}
		remove(Lookup(node, keys[:n-1]...), keys[n-1])
	}
}

// newScalar is a string that every reader takes for one: words such as "no" are quoted, which YAML 1.1 takes for a bool.
func newScalar(text string) *yaml.Node {
	node := &yaml.Node{}
	if err := node.Encode(text); err != nil || node.ShortTag() != yaml.NodeTagString {
		node.SetString(text)
	}
	node.Line, node.Column = 0, 0
	return node
}

func newMap() *yaml.Node  { return &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap} }
func newList() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: yaml.NodeTagSeq} }

// sureList makes the key a list where it is none yet, and returns it.
func sureList(node *yaml.Node, key string) *yaml.Node {
	i := keyIndex(node, key)
	if i < 0 {
		setNode(node, key, &yaml.Node{})
		i = keyIndex(node, key)
	}
	value := node.Content[i+1]
	if value.Kind == yaml.AliasNode {
		value = yaml.CopyYNode(resolve(value))
		value.Anchor = ""
		node.Content[i+1] = value
	}
	if value.Kind != yaml.SequenceNode {
		*value = yaml.Node{Kind: yaml.SequenceNode, Tag: yaml.NodeTagSeq, LineComment: value.LineComment}
	}
	return value
}

// sameValue tells whether both say the same, whatever they look like. The order of a map's keys says nothing.
func sameValue(a, b *yaml.Node) bool { return comparison{}.same(a, b) }

// comparison remembers which pairs with an anchor were compared: aliases lead there many times over, and may lead in circles.
type comparison map[[2]*yaml.Node]bool

func (c comparison) same(a, b *yaml.Node) bool {
	a, b = resolve(a), resolve(b)
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	if pair := [2]*yaml.Node{a, b}; a.Anchor != "" || b.Anchor != "" {
		if c[pair] {
			return true // If it is not so, who compares it finds out.
		}
		c[pair] = true
	}
	if a.Kind != yaml.MappingNode {
		return slices.EqualFunc(a.Content, b.Content, c.same)
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		other := lookup(b, a.Content[i].Value)
		if other == nil || !c.same(a.Content[i+1], other) {
			return false
		}
	}
	return true
}

// SameValue tells whether both objects say the same, whatever they look like and wherever they stand.
func SameValue(a, b *Resource) bool { return sameValue(a.Node.YNode(), b.Node.YNode()) }
