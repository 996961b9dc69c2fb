package yamltext

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

const (
	nullTag  = "!!null"
	boolTag  = "!!bool"
	strTag   = "!!str"
	mergeTag = "!!merge"
)

const quotedStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// isQuoted says whether the node's style makes it a string whatever its text.
func isQuoted(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Style&quotedStyles != 0
}

// old is what a YAML 1.1 reader takes for something else than a string when it stands without quotes, besides what the
// parser in use (YAML 1.2 for the most part) does: see https://yaml.org/type. Kubernetes reads YAML so.
var old = regexp.MustCompile(`^(?:` +
	`[yY]|yes|Yes|YES|on|On|ON|true|True|TRUE|[nN]|no|No|NO|off|Off|OFF|false|False|FALSE|` + // bool
	`=|<<|~|null|Null|NULL|` +
	`[-+]?(?:0[bB][01_]+|0[oO]?[0-7_]+|[0-9][0-9_]*|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+)|` + // int
	`[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9_]+)?|` + // float
	`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|` +
	`[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:(?:[Tt]|[ \t]+)[0-9].*)?` + // timestamp
	`)$`)

// truths are the words that are bool to a YAML 1.1 reader alone.
var truths = regexp.MustCompile(`^(?:[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$`)

// ambiguous says whether a plain text may be something else than a string to some reader.
func ambiguous(text string) bool {
	if text == "" {
		return true
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '+', c == '-', c == '.', c == '=', c == '<', c == '~':
	case len(text) > 5:
		// The longest word is false.
		return false
	}
	return old.MatchString(text) || (&yaml.Node{Kind: yaml.ScalarNode, Value: text}).ShortTag() != strTag
}

// spoken is the type that the node has to its readers. A word that only a YAML 1.1 reader takes for a bool is a string here,
// as the parser says.
func spoken(node *yaml.Node) string {
	tag := node.ShortTag()
	if tag == boolTag && len(node.Value) <= 3 && truths.MatchString(node.Value) {
		return strTag
	}
	return tag
}

// value is what the node says below its type.
func value(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode && node.Kind != yaml.AliasNode || spoken(node) == nullTag {
		return ""
	}
	return node.Value
}

// sameScalar says whether the text of one scalar will do for the other.
func sameScalar(have, want *yaml.Node) bool {
	if spoken(have) != spoken(want) || value(have) != value(want) {
		return false
	}
	switch {
	case spoken(want) != strTag:
		return true
	case isQuoted(have):
		// A bool by its tag is not what quotes say to a YAML 1.1 reader.
		return want.ShortTag() != boolTag
	case isQuoted(want):
		return !ambiguous(want.Value)
	}
	return true
}
