package yamltext

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// entry makes the edits inside an entry and in its comments, or says that the collection has to be written anew.
func (s *splicer) entry(it *item, i int, t *twig, j, depth int) bool {
	e, have, want := &it.entries[i], it.value(i), valueOf(t, j)
	if t.node.Kind == yaml.MappingNode {
		if key := t.kids[2*j].node.Anchor; key != "" && key != it.kids[2*i].node.Anchor {
			return false
		}
	}
	s.head(it, e, it.comment(i, headComment), t.comment(j, headComment))
	comment := t.comment(j, lineComment)
	if !changed(it.comment(i, lineComment), comment) {
		comment = ""
	}
	if s.node(have, want, depth+1) {
		s.comment(e, have, comment)
	} else {
		s.replace(it, e, have, want, comment)
	}
	s.foot(it, e, it.comment(i, footComment), t.comment(j, footComment))
	return true
}

// room is where a value stands: what of it is on the line of the key or dash, and the lines below that. A comment may be
// between.
type room struct {
	from, to int
	// below and tail are the end of the line, and that of the last one.
	below, tail int
}

func (s *splicer) room(e *entry, have *item) room {
	r := room{from: e.after, to: max(have.end, e.after)}
	style := have.node.Style & (yaml.LiteralStyle | yaml.FoldedStyle)
	switch {
	case len(have.entries) > 0 && have.entries[0].inner:
		tail := have.tail(s.src)
		return room{from: e.after, to: tail, below: tail, tail: tail}
	case len(have.entries) > 0:
		r.to = max(have.properties, e.after)
		r.below, r.tail = lineEnd(s.src, r.to), have.tail(s.src)
	case have.node.Kind == yaml.ScalarNode && style != 0:
		r.to = have.body
		for r.to < len(s.src) && !isSpace(s.src, r.to) {
			r.to++
		}
		r.below = lineEnd(s.src, r.to)
		r.tail = max(r.below, have.end)
	default:
		r.below = lineEnd(s.src, r.to)
		r.tail = r.below
		if have.start == have.end && isEmpty(s.src, r.to) {
			// Blanks behind nothing are not for what comes there.
			r.to = r.below
		}
	}
	return r
}

// measureBlock says how far the lines between two offsets are indented, and how long the longest is besides that.
func measureBlock(src []byte, from, to int) (indent, width int) {
	for line := nextLine(src, from); line < to; line = nextLine(src, line) {
		if isEmpty(src, line) {
			continue
		}
		if indent == 0 {
			for src[line+indent] == ' ' {
				indent++
			}
		}
		width = max(width, utf8.RuneCount(src[line:lineEnd(src, line)])-indent)
	}
	return indent, width
}

// replace writes the value of an entry anew.
func (s *splicer) replace(it *item, e *entry, have *item, want *twig, comment string) {
	if e.after == 0 {
		s.answer(it, e, want)
		return
	}
	r := s.room(e, have)
	at := place{column: it.column, sequence: it.node.Kind == yaml.SequenceNode, instead: have.node}
	if have.node.Kind == yaml.ScalarNode && r.tail > r.below {
		at.indent, at.width = measureBlock(s.src, r.below, r.tail)
	}
	written := s.write.value(adopt(have, want), at)
	if r.tail == r.below && len(written.below) == 0 && have.start < have.end && have.entries == nil {
		// One line takes the place of another, wherever that begins.
		s.edit(have.start, have.end, written.inline)
		s.comment(e, have, comment)
		return
	}
	if written.inline != "" {
		lead := string(s.src[r.from:max(have.start, r.from)])
		if lead == "" || strings.Trim(lead, " \t") != "" {
			lead = " "
		}
		written.inline = lead + written.inline
	}
	s.edit(r.from, r.to, written.inline)
	s.comment(e, have, comment)
	if len(written.below) > 0 {
		s.edit(r.below, r.tail, s.write.newline+strings.Join(written.below, s.write.newline))
	} else if r.below < r.tail {
		s.edit(r.below, r.tail, "")
	}
}

// answer writes the value of a key that has a question mark and no colon.
func (s *splicer) answer(it *item, e *entry, want *twig) {
	prefix := strings.Repeat(" ", it.column)
	written := s.write.value(want, place{column: it.column})
	lines := append([]string{strings.TrimRight(prefix+": "+written.inline, " ")}, written.below...)
	s.edit(e.own, e.own, s.write.newline+strings.Join(lines, s.write.newline))
}

// comment writes the comment behind a value, or leaves it if there is nothing to write.
func (s *splicer) comment(e *entry, have *item, comment string) {
	if comment == "" || len(have.entries) > 0 && have.entries[0].inner {
		return
	}
	r := s.room(e, have)
	sign := r.to
	for sign < r.below && s.src[sign] != '#' {
		sign++
	}
	switch line := oneLine(comment); {
	case line == "":
		s.edit(r.to, r.below, "")
	case sign == r.below:
		s.edit(r.to, r.below, " "+line)
	default:
		s.edit(sign, r.below, line)
	}
}

// head writes the comments above an entry.
func (s *splicer) head(it *item, e *entry, have, want string) {
	if !changed(have, want) {
		return
	}
	prefix := strings.Repeat(" ", it.column)
	if e.inner && commentText(want) == "" {
		return // What stands above the dash belongs to the element.
	}
	if e.inner {
		lines := commentLines(want, prefix)
		s.edit(e.start, e.start, strings.TrimPrefix(strings.Join(lines, s.write.newline)+s.write.newline+prefix, prefix))
		return
	}
	line := lineStart(s.src, e.start)
	from := s.above(e, have)
	lines := commentLines(want, prefix)
	if len(lines) > 0 && from < line && isEmpty(s.src, lineStart(s.src, previousLine(s.src, line))) {
		lines = append(lines, "") // What parts the comment from the entry stays.
	}
	var text strings.Builder
	for _, comment := range lines {
		text.WriteString(comment + s.write.newline)
	}
	s.edit(from, line, text.String())
}

// above is where the comment begins that the parser says is the entry's: with what blank lines part from the entry, if that is
// in it as well.
func (s *splicer) above(e *entry, have string) int {
	line := lineStart(s.src, e.start)
	for from := e.head; from > 0; {
		if strings.Trim(s.comments(from, line), "\n") == strings.Trim(have, "\n") {
			return from
		}
		before := lineStart(s.src, previousLine(s.src, from))
		if _, ok := isComment(s.src, before); before == from || !ok && !isEmpty(s.src, before) {
			break
		}
		from = before
	}
	return e.head
}

// foot writes the comments below an entry.
func (s *splicer) foot(it *item, e *entry, have, want string) {
	if !changed(have, want) {
		return
	}
	if commentText(want) == "" {
		s.edit(e.own, e.tail, "")
		return
	}
	text := strings.Join(commentLines(want, strings.Repeat(" ", it.column)), s.write.newline)
	if next := nextLine(s.src, e.tail); next < len(s.src) && !isEmpty(s.src, next) {
		text += s.write.newline
	}
	s.edit(e.own, e.tail, s.write.newline+text)
}

// comments are those of some lines, as the parser says them.
func (s *splicer) comments(from, to int) string {
	var lines []string
	for from < to {
		end := lineEnd(s.src, from)
		lines = append(lines, strings.TrimSpace(string(s.src[from:end])))
		from = end + max(breakWidth(s.src, end), 1)
	}
	return strings.Join(lines, "\n")
}
