package yamltext

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// value writes a value, without the comments beside it.
func (w writer) value(t *twig, at place) text {
	written := w.bare(t, at)
	if t.node.Anchor != "" {
		written.inline = strings.TrimSuffix("&"+t.node.Anchor+" "+written.inline, " ")
	}
	return written
}

func (w writer) bare(t *twig, at place) text {
	switch t.node.Kind {
	case yaml.ScalarNode:
		return w.scalar(t.node, at)
	case yaml.AliasNode:
		return text{inline: "*" + t.node.Value}
	case yaml.MappingNode, yaml.SequenceNode:
	default:
		return text{inline: "null"}
	}
	tag := ""
	if spoken := t.node.ShortTag(); spoken != "!!map" && spoken != "!!seq" {
		tag = tagText(spoken)
	}
	if len(t.kids) == 0 || at.flow || at.key || w.staysFlow(t, at) {
		return text{inline: strings.TrimPrefix(tag+" "+w.flow(t, at.quotes), " ")}
	}
	column := w.inside(t, at)
	lines := w.lines(t, column)
	if at.sequence && tag == "" && t.node.Anchor == "" {
		return text{inline: strings.TrimLeft(lines[0], " "), below: lines[1:]}
	}
	return text{inline: tag, below: lines}
}

// inside is how far the entries of a block collection at the place are indented.
func (w writer) inside(t *twig, at place) int {
	switch {
	case at.column < 0:
		return 0
	case at.sequence:
		return at.column + 2
	case t.node.Kind == yaml.SequenceNode && !w.wide:
		return at.column
	}
	return at.column + w.step
}

// staysFlow says whether a collection is written in one line: if it asks for that, has no comments, and does not fill one that
// was empty.
func (w writer) staysFlow(t *twig, at place) bool {
	if at.instead != nil && at.instead.Kind == t.node.Kind && len(at.instead.Content) == 0 {
		return false
	}
	return t.node.Style&yaml.FlowStyle != 0 && !hasComments(t)
}

// hasComments says whether there are comments inside the collection.
func hasComments(t *twig) bool {
	for i := range t.kids {
		node := t.kids[i].node
		if node.HeadComment != "" || node.LineComment != "" || node.FootComment != "" || hasComments(&t.kids[i]) {
			return true
		}
	}
	return false
}

// flow writes a collection in one line.
func (w writer) flow(t *twig, quotes yaml.Style) string {
	var out strings.Builder
	at := place{flow: true, quotes: quotes}
	if t.node.Kind == yaml.SequenceNode {
		for i := range t.kids {
			if i > 0 {
				out.WriteString(", ")
			}
			out.WriteString(w.value(&t.kids[i], at).inline)
		}
		return "[" + out.String() + "]"
	}
	for i := 0; i+1 < len(t.kids); i += 2 {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(w.flowPair(&t.kids[i], &t.kids[i+1], at))
	}
	return "{" + out.String() + "}"
}

// flowPair writes a pair of a flow mapping.
func (w writer) flowPair(key, value *twig, at place) string {
	written, long := w.key(key, at)
	if long {
		written = "? " + written
	}
	return written + ": " + w.value(value, at).inline
}

// longest is how long a key may be that has no question mark before it; the specification allows 1024 characters.
const longest = 500

// key writes a key, and says whether it needs a question mark.
func (w writer) key(t *twig, at place) (written string, long bool) {
	at.key, at.instead = true, nil
	written = w.value(t, at).inline
	if t.node.Kind == yaml.AliasNode {
		written += " "
	}
	return written, len(written) > longest || len(t.kids) > 0
}

// lines writes the entries of a block collection.
func (w writer) lines(t *twig, column int) []string {
	var lines []string
	count := len(t.kids)
	if t.node.Kind == yaml.MappingNode {
		count /= 2
	}
	for i := range count {
		written := w.entry(t, i, column)
		if i+1 < count && footOf(t, i) != "" {
			// Without an empty line the comment would be above the next entry rather than below this one.
			written = append(written, "")
		}
		lines = append(lines, written...)
	}
	return lines
}

// entry writes an entry of a block collection, with its comments.
func (w writer) entry(t *twig, i, column int) []string {
	prefix := strings.Repeat(" ", column)
	lines := commentLines(headOf(t, i), prefix)
	at := place{column: column, sequence: t.node.Kind == yaml.SequenceNode}
	value, sign := valueOf(t, i), prefix+"-"
	if !at.sequence {
		key, long := w.key(&t.kids[2*i], place{})
		sign = prefix + key + ":"
		if long {
			lines = append(lines, prefix+"? "+key)
			sign = prefix + ":"
		}
	}
	written := w.value(value, at)
	if written.inline != "" {
		sign += " " + written.inline
	}
	if comment := oneLine(lineOf(t, i)); comment != "" {
		sign += " " + comment
	}
	lines = append(append(lines, sign), written.below...)
	return append(lines, commentLines(footOf(t, i), prefix)...)
}

// valueOf is the value of the entry.
func valueOf(t *twig, i int) *twig {
	if t.node.Kind == yaml.MappingNode {
		return &t.kids[2*i+1]
	}
	return &t.kids[i]
}
