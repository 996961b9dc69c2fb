package yamltext

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// value writes a value, without the comments beside it.
func (w writer) value(t *twig, at place) text {
	if t.node.Kind == yaml.MappingNode || t.node.Kind == yaml.SequenceNode {
		return w.collection(t, at)
	}
	written := text{inline: "*" + t.node.Value}
	if t.node.Kind == yaml.ScalarNode {
		written = w.scalar(t.node, at)
	}
	written.inline = properties(t.node) + written.inline
	return written
}

// properties are the anchor of a node and, of a collection, the tag; with a blank behind each.
func properties(node *yaml.Node) string {
	written := ""
	if node.Anchor != "" {
		written = "&" + node.Anchor + " "
	}
	collection := node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode
	if tag := node.ShortTag(); collection && tag != "!!map" && tag != "!!seq" {
		written += tagText(tag) + " "
	}
	return written
}

// collection writes a mapping or a sequence.
func (w writer) collection(t *twig, at place) text {
	if len(t.kids) == 0 || at.flow || at.key || w.staysFlow(t, at) {
		var out strings.Builder
		w.flow(&out, t, place{flow: true, quotes: at.quotes})
		return text{inline: out.String()}
	}
	lines := w.lines(t, w.inside(t, at))
	before := strings.TrimSuffix(properties(t.node), " ")
	if at.sequence && before == "" {
		return text{inline: strings.TrimLeft(lines[0], " "), below: lines[1:]}
	}
	return text{inline: before, below: lines}
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
	return t.node.Style&yaml.FlowStyle != 0 && !t.commented
}

// flow writes a node in one line, and what is below it.
func (w writer) flow(out *strings.Builder, t *twig, at place) {
	if t.node.Kind != yaml.MappingNode && t.node.Kind != yaml.SequenceNode {
		out.WriteString(w.value(t, at).inline)
		return
	}
	out.WriteString(properties(t.node))
	if t.node.Kind == yaml.SequenceNode {
		out.WriteByte('[')
		for i := range t.kids {
			if i > 0 {
				out.WriteString(", ")
			}
			w.flow(out, &t.kids[i], at)
		}
		out.WriteByte(']')
		return
	}
	out.WriteByte('{')
	for i := 0; i+1 < len(t.kids); i += 2 {
		if i > 0 {
			out.WriteString(", ")
		}
		w.flowPair(out, &t.kids[i], &t.kids[i+1], at)
	}
	out.WriteByte('}')
}

// flowPair writes a pair of a flow mapping.
func (w writer) flowPair(out *strings.Builder, key, value *twig, at place) {
	if len(key.kids) > 0 {
		out.WriteString("? ")
		w.flow(out, key, at)
	} else {
		written, long := w.key(key, at)
		if long {
			out.WriteString("? ")
		}
		out.WriteString(written)
	}
	out.WriteString(": ")
	w.flow(out, value, at)
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
		if i+1 < count && commentText(t.comment(i, footComment)) != "" {
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
	lines := commentLines(t.comment(i, headComment), prefix)
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
	if comment := oneLine(t.comment(i, lineComment)); comment != "" {
		sign += " " + comment
	}
	lines = append(append(lines, sign), written.below...)
	return append(lines, commentLines(t.comment(i, footComment), prefix)...)
}

// valueOf is the value of the entry.
func valueOf(t *twig, i int) *twig {
	if t.node.Kind == yaml.MappingNode {
		return &t.kids[2*i+1]
	}
	return &t.kids[i]
}
