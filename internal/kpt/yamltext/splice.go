package yamltext

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// splicer makes the edits that turn what a text says into what is wanted.
type splicer struct {
	src   []byte
	write writer
	// whole is the depth from which a node that changes is written anew, with all below it.
	whole int
	edits []edit
}

func (s *splicer) edit(from, to int, text string) {
	s.edits = append(s.edits, edit{from: from, to: to, text: text})
}

// node makes the edits inside a node, or says that it has to be written anew. Comments beside the node are not its own.
func (s *splicer) node(it *item, t *twig, depth int) bool {
	if it.full == t.full {
		return true
	}
	if depth >= s.whole || !saysItself(it.node, t.node) {
		return false
	}
	if t.node.Kind == yaml.ScalarNode || t.node.Kind == yaml.AliasNode {
		return true
	}
	mark := len(s.edits)
	ok := false
	if it.entries == nil {
		ok = s.flow(it, t, depth)
	} else {
		ok = s.block(it, t, depth)
	}
	if !ok {
		s.edits = s.edits[:mark]
	}
	return ok
}

// block makes the edits inside a block collection.
func (s *splicer) block(it *item, t *twig, depth int) bool {
	var a *alignment
	if t.node.Kind == yaml.MappingNode {
		a = alignMapping(it.kids, t.kids)
	} else {
		a = alignSequence(it.kids, t.kids)
	}
	// stays says for each entry there is that it stays where it is.
	stays := make([]bool, len(a.kept))
	last := unmatched
	for j, i := range a.from {
		if a.stays[j] {
			stays[i], last = true, i
		}
	}
	if last == unmatched || s.headInside(it, t, a, stays) {
		return false
	}
	last = unmatched
	for j, i := range a.from {
		switch {
		case i == unmatched:
			s.insert(it, last, s.write.entry(t, j, it.column), commentText(t.comment(j, footComment)) != "")
		case a.stays[j]:
			if !s.entry(it, i, t, j, depth) {
				return false
			}
			last = i
		default:
			lines, ok := s.moved(it, i, t, j, depth)
			if !ok {
				return false
			}
			s.insert(it, last, lines, it.entries[i].own < it.entries[i].tail)
		}
	}
	s.remove(it, stays)
	return true
}

// headInside says whether what would begin behind the dash gets another comment above it.
func (s *splicer) headInside(it *item, t *twig, a *alignment, stays []bool) bool {
	if !it.entries[0].inner || stays[0] {
		return false
	}
	j := slices.Index(a.stays, true)
	return changed(it.comment(a.from[j], headComment), t.comment(j, headComment))
}

// insert puts an entry below the one that stays, or above the first if there is none.
func (s *splicer) insert(it *item, last int, lines []string, foot bool) {
	lines = trimIndent(lines, it.column)
	text := strings.Join(lines, s.write.newline)
	if last != unmatched {
		at := it.entries[last].tail
		if foot && !isEmpty(s.src, nextLine(s.src, at)) {
			// Without an empty line the comment would be above the next entry rather than below this one.
			text += s.write.newline
		}
		s.edit(at, at, s.write.newline+text)
		return
	}
	if foot {
		text += s.write.newline
	}
	indent := strings.Repeat(" ", it.column)
	if first := it.entries[0]; first.inner {
		s.edit(first.start, first.start, strings.TrimPrefix(text, indent)+s.write.newline+indent)
	} else {
		s.edit(first.head, first.head, text+s.write.newline)
	}
}

// trimIndent has the first line begin at the column.
func trimIndent(lines []string, column int) []string {
	if len(lines) > 0 {
		lines[0] = strings.Repeat(" ", column) + strings.TrimLeft(lines[0], " ")
	}
	return lines
}

// moved is the text of an entry that moves, with the edits inside it.
func (s *splicer) moved(it *item, i int, t *twig, j, depth int) ([]string, bool) {
	e := &it.entries[i]
	text, ok := s.within(e.head, e.tail, func() bool { return s.entry(it, i, t, j, depth) })
	return strings.Split(text, s.write.newline), ok
}

// within is the text between two offsets with the edits that do makes in it; they are made nowhere else.
func (s *splicer) within(from, to int, do func() bool) (text string, ok bool) {
	mark := len(s.edits)
	ok = do()
	edits := s.edits[mark:]
	s.edits = s.edits[:mark]
	if !ok {
		return "", false
	}
	edited, err := apply(s.src, from, to, edits)
	return string(edited), err == nil
}

// remove deletes the entries that do not stay, with their comments.
func (s *splicer) remove(it *item, stays []bool) {
	for i := 0; i < len(stays); i++ {
		if stays[i] {
			continue
		}
		first := i
		for i+1 < len(stays) && !stays[i+1] {
			i++
		}
		if i+1 < len(stays) {
			s.removeBefore(it, first, i)
		} else {
			// What separates the collection from what follows stays.
			from := it.entries[first].head
			for above := it.entries[first-1].tail; from > above; {
				line := lineStart(s.src, previousLine(s.src, from))
				if from = line; !isEmpty(s.src, line) {
					from = lineEnd(s.src, line)
					break
				}
			}
			from = max(from, it.entries[first-1].tail)
			s.edit(from, it.entries[i].tail, "")
		}
	}
}

// removeBefore deletes entries before one that stays. Of the empty lines above and below, one lot stays.
func (s *splicer) removeBefore(it *item, first, last int) {
	e, next := it.entries[first], it.entries[last+1]
	if e.inner {
		to := next.head
		for to < next.start && isBlankByte(s.src[to]) {
			to++
		}
		s.edit(e.start, to, "")
		return
	}
	to := nextLine(s.src, it.entries[last].tail)
	if first == 0 || isEmpty(s.src, lineStart(s.src, previousLine(s.src, e.head))) {
		for to < next.head && isEmpty(s.src, to) {
			to = nextLine(s.src, to)
		}
	}
	s.edit(e.head, to, "")
}
