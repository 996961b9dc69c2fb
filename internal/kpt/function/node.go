package function

import (
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Tags of scalars, as nodes have them.
const (
	tagString = "!!str"
	tagInt    = "!!int"
	tagFloat  = "!!float"
	tagBool   = "!!bool"
	tagNull   = "!!null"
	tagMap    = "!!map"
	tagList   = "!!seq"
)

// isQuoted tells whether the style makes a scalar a string whatever it says.
func isQuoted(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// isNull tells whether nothing is there, or null.
func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == tagNull
}

// isString tells whether the scalar is read as a string by everybody: also by readers of YAML 1.1, to whom yes is true.
func isString(n *yaml.Node) bool {
	return n.ShortTag() == tagString && (isQuoted(n) || isWord(n.Value) || !yaml.IsYaml1_1NonString(n))
}

// newText is a scalar that everybody reads as a string.
func newText(value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tagString, Value: value}
	if needsQuotes(value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// needsQuotes tells whether a plain scalar of the value would be something else than a string to somebody.
func needsQuotes(value string) bool {
	if isWord(value) {
		return false
	}
	plain := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	return value == "" || plain.ShortTag() != tagString || yaml.IsYaml1_1NonString(plain)
}

// isWord tells, without asking parsers, that the value is a string to everybody: it begins with a letter and is longer than
// false, or with one that neither yes, no, on, off, true, false nor null begins with.
func isWord(value string) bool {
	if value == "" {
		return false
	}
	first := value[0] | 0x20
	return first >= 'a' && first <= 'z' && (len(value) > len("false") || !strings.ContainsRune("ynotf", rune(first)))
}

// resolved is the tag that a plain scalar of the value has.
func resolved(value string) string {
	tag := (&yaml.Node{Kind: yaml.ScalarNode, Value: value}).ShortTag()
	switch tag {
	case tagInt, tagFloat, tagBool, tagNull:
		return tag
	default:
		// Dates are strings to Kubernetes, and a merge key is no value.
		return tagString
	}
}

// sameNode tells whether both say the same, whatever their comments and styles.
func sameNode(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode && (a.Value != b.Value || a.ShortTag() != b.ShortTag()) {
		return false
	}
	for i := range a.Content {
		if !sameNode(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// copyNode is all of it, without comments: those speak of where they stand.
func copyNode(n *yaml.Node) *yaml.Node {
	made := *n
	made.HeadComment, made.LineComment, made.FootComment, made.Anchor = "", "", "", ""
	made.Line, made.Column = 0, 0
	made.Content = make([]*yaml.Node, 0, len(n.Content))
	for _, below := range n.Content {
		made.Content = append(made.Content, copyNode(below))
	}
	return &made
}

// size is about how many bytes the node takes when it is written.
func size(n *yaml.Node) int64 {
	total := int64(len(n.Value)) + 2
	for _, below := range n.Content {
		total += size(below)
	}
	return total
}

// place is the path of a field, for errors: spec.containers[0].image.
func place(path []string) string {
	var out strings.Builder
	for i, part := range path {
		_, err := strconv.Atoi(part)
		switch {
		case err == nil:
			out.WriteString("[" + part + "]")
			continue
		case strings.ContainsAny(part, "./[]"):
			out.WriteString("[" + strconv.Quote(part) + "]")
			continue
		case i > 0:
			out.WriteByte('.')
		}
		out.WriteString(part)
	}
	return out.String()
}
