package yamltext

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is how a value is written: what stands on the line of the key or dash, and the lines below.
type text struct {
	inline string
	below  []string
}

// writer writes nodes as the text around them is written.
type writer struct {
	// newline is the line break that the text uses.
	newline string
	// step is by how much a mapping is indented further than the one around it.
	step int
	// wide says that sequences in mappings are indented as well.
	wide bool
}

// place is where a value is written.
type place struct {
	// column is how far the entries of the collection around are indented, or -1 for the document itself.
	column int
	// sequence says that the collection around is a sequence.
	sequence bool
	// flow says that a flow collection is around, and key that the value is a key: it has to stand on one line.
	flow, key bool
	// quotes is the style of the strings beside it, or 0.
	quotes yaml.Style
	// indent and width are the indentation of the block scalar that stands there now, and the length of its longest line, or 0.
	indent, width int
	// instead is the node that stands there now, or nil.
	instead *yaml.Node
}

// under is how far the text of a block scalar is indented at the place.
func (w writer) under(at place) int {
	if at.indent > at.column {
		return at.indent
	}
	if at.column < 0 {
		return w.step
	}
	if at.sequence {
		return at.column + 2
	}
	return at.column + w.step
}

// scalar writes a scalar, without its anchor.
func (w writer) scalar(node *yaml.Node, at place) text {
	tag := spoken(node)
	if tag != strTag {
		return text{inline: special(node, tag, at)}
	}
	tagged := ""
	if node.Style&yaml.TaggedStyle != 0 && node.ShortTag() == strTag {
		tagged = "!!str "
	}
	for _, style := range w.styles(node, at) {
		if written, ok := w.styled(node.Value, style, at); ok {
			written.inline = tagged + written.inline
			return written
		}
	}
	return text{inline: tagged + doubleQuoted(node.Value)}
}

// special writes a scalar that is no string.
func special(node *yaml.Node, tag string, at place) string {
	if tag == nullTag {
		if value := (&yaml.Node{Kind: yaml.ScalarNode, Value: node.Value}); value.ShortTag() == nullTag && node.Value != "" {
			return node.Value
		}
		return "null"
	}
	plain := &yaml.Node{Kind: yaml.ScalarNode, Value: node.Value}
	if plain.ShortTag() == tag && node.Style&yaml.TaggedStyle == 0 || node.Value == "<<" && tag == mergeTag {
		return node.Value
	}
	if isQuoted(node) || !isPlainText(node.Value, at.flow) {
		return tagText(tag) + " " + doubleQuoted(node.Value)
	}
	return tagText(tag) + " " + node.Value
}

// tagText is how a tag is written.
func tagText(tag string) string {
	if strings.HasPrefix(tag, "!") {
		return tag
	}
	return "!<" + tag + ">"
}

// styles are the styles for a string, the best first: as what it replaces, then as the node asks for, then what is readable.
func (w writer) styles(node *yaml.Node, at place) []yaml.Style {
	var styles []yaml.Style
	block := !at.flow && !at.key
	lines := strings.Contains(node.Value, "\n")
	if at.quotes != 0 && at.instead == nil {
		styles = append(styles, at.quotes)
	}
	for _, like := range []*yaml.Node{at.instead, node} {
		if like == nil || like.Kind != yaml.ScalarNode {
			continue
		}
		style := like.Style & quotedStyles
		switch {
		case style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && block:
			styles = append(styles, style)
		case style == yaml.DoubleQuotedStyle, style == yaml.SingleQuotedStyle:
			if like == node || spoken(like) == strTag {
				styles = append(styles, style)
			}
		case style == 0 && !lines && w.mayBePlain(node, at):
			styles = append(styles, 0)
		}
	}
	if lines && block {
		styles = append(styles, yaml.LiteralStyle)
	}
	return styles
}

// mayBePlain says whether the string may stand without quotes. A word that is a bool to old readers alone may where a text is
// taken over that says it that way, but not where it takes the place of a string.
func (w writer) mayBePlain(node *yaml.Node, at place) bool {
	if !isPlainText(node.Value, at.flow) {
		return false
	}
	if !ambiguous(node.Value) {
		return true
	}
	instead := at.instead
	switch {
	case isQuoted(node) || !truths.MatchString(node.Value):
		return false
	case node.ShortTag() == boolTag:
		return true
	case node.Line == 0:
		// It has been made as a string.
		return false
	case instead != nil && instead.Kind == yaml.ScalarNode:
		return !isQuoted(instead) && (truths.MatchString(instead.Value) || instead.ShortTag() == boolTag)
	}
	return true
}

// styled writes a string in a style, if it can be.
func (w writer) styled(value string, style yaml.Style, at place) (text, bool) {
	switch style {
	case 0:
		return text{inline: value}, true
	case yaml.SingleQuotedStyle:
		if !isPrintable(value) || strings.ContainsAny(value, "\n") {
			return text{}, false
		}
		return text{inline: "'" + strings.ReplaceAll(value, "'", "''") + "'"}, true
	case yaml.LiteralStyle, yaml.FoldedStyle:
		return w.blockScalar(value, style == yaml.FoldedStyle, at)
	default:
		return text{inline: doubleQuoted(value)}, true
	}
}

// blockScalar writes a string as literal or folded text.
func (w writer) blockScalar(value string, folded bool, at place) (text, bool) {
	if value == "" || !isPrintable(value) || strings.Trim(value, " \n") == "" {
		return text{}, false
	}
	body := strings.TrimRight(value, "\n")
	header := "|"
	if folded {
		header = ">"
	}
	indent := w.under(at)
	if value[0] == ' ' || value[0] == '\n' || value[0] == '\t' {
		// The first line does not show how far the text is indented.
		deeper := indent - max(at.column, 0)
		if deeper > 9 {
			return text{}, false
		}
		header += strconv.Itoa(deeper)
	}
	lines := strings.Split(body, "\n")
	if folded {
		lines = foldLines(lines, at.width)
	}
	prefix := strings.Repeat(" ", indent)
	for i, line := range lines {
		if line != "" {
			lines[i] = prefix + line
		}
	}
	switch ends := len(value) - len(body); ends {
	case 0:
		header += "-"
	case 1:
	default:
		if at.instead == nil || !strings.HasSuffix(at.instead.Value, "\n\n") || !isQuoted(at.instead) {
			// Empty lines that follow in the text would be part of the value as well.
			return text{}, false
		}
		header += "+"
		lines = append(lines, make([]string, ends-1)...)
	}
	return text{inline: header, below: lines}, true
}

// foldLines are the lines of a folded scalar for the lines of its value: between two lines that begin with no blank, a break
// alone would be a space. They are no longer than the width, if it is not 0 and the words allow.
func foldLines(lines []string, width int) []string {
	var out []string
	for i, line := range lines {
		if line == "" || isBlankByte(line[0]) {
			out = append(out, line)
			continue
		}
		out = append(out, wrap(line, width)...)
		next := i + 1
		for next < len(lines) && lines[next] == "" {
			next++
		}
		if next < len(lines) && !isBlankByte(lines[next][0]) {
			out = append(out, "")
		}
	}
	return out
}

// wrap breaks a line at single spaces between words.
func wrap(line string, width int) []string {
	if width == 0 {
		return []string{line}
	}
	var out []string
	start, last, count := 0, 0, 0
	for i, r := range line {
		count++
		single := r == ' ' && i > 0 && !isBlankByte(line[i-1]) && i+1 < len(line) && !isBlankByte(line[i+1])
		if single && count-1 <= width {
			last = i
		}
		if count > width && last > start || single && count-1 > width {
			at := last
			if at <= start {
				at = i
			}
			out = append(out, line[start:at])
			start, last = at+1, at+1
			count = utf8.RuneCountInString(line[start : i+utf8.RuneLen(r)])
		}
	}
	return append(out, line[start:])
}

func isBlankByte(c byte) bool { return c == ' ' || c == '\t' }
