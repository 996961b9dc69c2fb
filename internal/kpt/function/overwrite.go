package function

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/yamltext"
)

// overwrite makes n say what the other says, and nothing else. What says so already stays as it is written, and so do comments
// and the order of keys.
func overwrite(n, by *yaml.Node) {
	switch {
	case sameValue(n, by):
	case n.Kind == yaml.MappingNode && by.Kind == yaml.MappingNode:
		overwriteMap(n, by)
	case n.Kind == yaml.SequenceNode && by.Kind == yaml.SequenceNode:
		overwriteList(n, by)
	default:
		n.Kind, n.Tag, n.Value, n.Style, n.Content = by.Kind, by.Tag, by.Value, by.Style, by.Content
	}
}

// overwriteList keeps the elements that are there: what stands before and behind all changes, then those of the same name.
func overwriteList(n, by *yaml.Node) {
	have, want := n.Content, by.Content
	before, behind := 0, 0
	for before < min(len(have), len(want)) && sameValue(have[before], want[before]) {
		before++
	}
	for behind < min(len(have), len(want))-before && sameValue(have[len(have)-1-behind], want[len(want)-1-behind]) {
		behind++
	}
	kept := slices.Clone(want)
	copy(kept, have[:before])
	copy(kept[len(kept)-behind:], have[len(have)-behind:])
	have, changed := have[before:len(have)-behind], kept[before:len(kept)-behind]
	there, named := byName(have)
	_, unique := byName(changed)
	for i, wanted := range changed {
		var old *yaml.Node
		switch {
		case named && unique:
			old = there[elementName(wanted)]
		case len(have) == len(changed):
			old = have[i]
		}
		if old != nil {
			overwrite(old, wanted)
			changed[i] = old
			continue
		}
		uncommented(wanted)
	}
	n.Content = kept
}

// uncommented says that comments of what stood in the place of something new are not its own.
func uncommented(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = yamltext.NoComment, yamltext.NoComment, yamltext.NoComment
	for _, below := range n.Content {
		uncommented(below)
	}
}

// byName finds elements of a list by their names, if each has one of its own.
func byName(elements []*yaml.Node) (found map[string]*yaml.Node, ok bool) {
	found = map[string]*yaml.Node{}
	for _, element := range elements {
		name := elementName(element)
		if name == "" || found[name] != nil {
			return nil, false
		}
		found[name] = element
	}
	return found, true
}

// elementName is what an element of a list is known by: its name, or itself.
func elementName(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return kpt.Text(n, "name")
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
