package yamltext

import (
	"bytes"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errLost says that a node's place in the text was not found. The document is then written as a whole.
var errLost = errors.New("the text is not laid out as the parser says")

// locator finds the places of nodes. What comes next is known from the tree that the parser made of the same text, so that
// only the ends have to be found; the positions that the parser notes are too few and too coarse for that.
type locator struct {
	src []byte
	at  int
	// wide and narrow count the sequences in mappings that are indented further than their key, and those that are not.
	wide, narrow int
	// steps counts by how much mappings are indented further than the mapping around them.
	steps [10]int
}

// prologue goes behind what precedes the content: byte order mark, directives and marker.
func (l *locator) prologue() {
	if bytes.HasPrefix(l.src, []byte(byteOrderMark)) {
		l.at = len(byteOrderMark)
	}
	content := l.at
	for {
		l.skip()
		if l.at >= len(l.src) || l.at != l.lineStart(l.at) {
			break
		}
		line := l.src[l.at:lineEnd(l.src, l.at)]
		if isMarker(line, "---") {
			l.at += 3
			return
		}
		if line[0] != '%' {
			break
		}
		l.at += len(line)
	}
	// Without a marker the comments above belong to the content.
	l.at = content
}

// locate finds the node that comes next. Around it is a block collection indented by outer bytes, or -1.
func (l *locator) locate(node *yaml.Node, outer int) (item, error) {
	it := item{node: node, start: l.at, body: l.at, end: l.at, column: -1}
	tagged := node.Style&yaml.TaggedStyle != 0
	empty := node.Kind == yaml.ScalarNode && node.Value == "" && node.Style&^yaml.TaggedStyle == 0
	if empty && !tagged && node.Anchor == "" {
		return it, nil
	}
	l.skip()
	it.start = l.at
	if err := l.properties(&it, empty); err != nil {
		return it, err
	}
	it.body = l.at
	if empty {
		it.end = l.at
		return it, nil
	}
	var err error
	switch {
	case node.Kind == yaml.ScalarNode:
		err = l.scalar(node, outer)
	case node.Kind == yaml.AliasNode:
		err = l.literally("*" + node.Value)
	case node.Style&yaml.FlowStyle != 0:
		err = l.flow(&it, outer)
	case node.Kind == yaml.SequenceNode:
		err = l.sequence(&it, outer)
	case node.Kind == yaml.MappingNode:
		err = l.mapping(&it, outer)
	default:
		err = errLost
	}
	it.end = l.at
	return it, err
}

// properties goes behind the node's anchor and tag and, if content is to follow, to that.
func (l *locator) properties(it *item, empty bool) error {
	node := it.node
	anchor, tag := node.Anchor != "", node.Style&yaml.TaggedStyle != 0
	for {
		switch {
		case l.peek() == '&' && anchor:
			anchor = false
			if err := l.literally("&" + node.Anchor); err != nil {
				return err
			}
		case l.peek() == '!' && (tag || !empty):
			tag = false
			for l.at < len(l.src) && !isSpace(l.src, l.at) {
				l.at++
			}
		case anchor || tag:
			return errLost
		default:
			return nil
		}
		it.properties = l.at
		if anchor || tag || !empty {
			l.skip()
		}
	}
}

// sequence goes behind a block sequence.
func (l *locator) sequence(it *item, outer int) error {
	it.kids = make([]item, 0, len(it.node.Content))
	it.entries = make([]entry, 0, len(it.node.Content))
	for i, child := range it.node.Content {
		l.skip()
		e := entry{start: l.at, after: l.at + 1}
		if l.peek() != '-' || !isSpaceOrEnd(l.src, l.at+1) {
			return errLost
		}
		if i == 0 {
			it.column = l.at - l.lineStart(l.at)
			e.inner = !l.beginsLine(l.at)
		}
		l.at++
		kid, err := l.locate(child, it.column)
		if err != nil {
			return err
		}
		it.kids, it.entries = append(it.kids, kid), append(it.entries, e)
	}
	if len(it.entries) > 0 && !it.entries[0].inner && outer >= 0 {
		if it.column > outer {
			l.wide++
		} else {
			l.narrow++
		}
	}
	return nil
}

// mapping goes behind a block mapping.
func (l *locator) mapping(it *item, outer int) error {
	it.kids = make([]item, 0, len(it.node.Content))
	it.entries = make([]entry, 0, len(it.node.Content)/2)
	for i := 0; i+1 < len(it.node.Content); i += 2 {
		l.skip()
		e := entry{start: l.at}
		if i == 0 {
			it.column = l.at - l.lineStart(l.at)
			e.inner = !l.beginsLine(l.at)
		}
		if l.peek() == '?' && isSpaceOrEnd(l.src, l.at+1) {
			e.explicit = true
			l.at++
		}
		key, err := l.locate(it.node.Content[i], it.column)
		if err != nil {
			return err
		}
		if err := l.colon(&e); err != nil {
			return err
		}
		value, err := l.locate(it.node.Content[i+1], it.column)
		if err != nil {
			return err
		}
		it.kids, it.entries = append(it.kids, key, value), append(it.entries, e)
	}
	if step := it.column - outer; outer >= 0 && step < len(l.steps) && step > 0 && !it.entries[0].inner {
		l.steps[step]++
	}
	return nil
}

// colon goes behind the colon of a pair, if there is one.
func (l *locator) colon(e *entry) error {
	behind := l.at
	if e.explicit {
		l.skip()
	} else {
		l.blanks()
	}
	if l.peek() == ':' && isSpaceOrEnd(l.src, l.at+1) {
		l.at++
		e.after = l.at
		return nil
	}
	l.at = behind
	if e.explicit {
		return nil
	}
	return errLost
}

// flow goes behind a flow collection. A pair in a flow sequence is a mapping without braces.
func (l *locator) flow(it *item, outer int) error {
	closer := byte(']')
	switch {
	case it.node.Kind == yaml.SequenceNode && l.peek() == '[':
		l.at++
	case it.node.Kind == yaml.MappingNode && l.peek() == '{':
		closer = '}'
		l.at++
	case it.node.Kind == yaml.MappingNode:
		it.bare = true
	default:
		return errLost
	}
	it.kids = make([]item, 0, len(it.node.Content))
	for i, child := range it.node.Content {
		if it.node.Kind == yaml.MappingNode && i%2 == 1 {
			l.flowColon()
		} else {
			l.separator()
		}
		kid, err := l.locate(child, outer)
		if err != nil {
			return err
		}
		it.kids = append(it.kids, kid)
	}
	if it.bare {
		return nil
	}
	l.separator()
	return l.literally(string(closer))
}

// flowColon goes behind the colon of a pair in a flow mapping, or stays where there is none.
func (l *locator) flowColon() {
	behind := l.at
	l.skip()
	if l.peek() == ':' {
		l.at++
		return
	}
	l.at = behind
}

// separator goes to the next node of a flow collection.
func (l *locator) separator() {
	for l.skip(); l.peek() == ',' || l.peek() == '?' && isSpaceOrEnd(l.src, l.at+1); l.skip() {
		l.at++
	}
}

// literally goes behind the text, which has to be there.
func (l *locator) literally(text string) error {
	if !strings.HasPrefix(string(l.src[l.at:min(len(l.src), l.at+len(text))]), text) {
		return errLost
	}
	l.at += len(text)
	return nil
}

// peek is the byte at hand, or 0 at the end.
func (l *locator) peek() byte {
	if l.at < len(l.src) {
		return l.src[l.at]
	}
	return 0
}

// skip goes behind blanks, comments and line breaks.
func (l *locator) skip() {
	for l.at < len(l.src) {
		l.blanks()
		if l.peek() == '#' {
			l.at = lineEnd(l.src, l.at)
		}
		width := breakWidth(l.src, l.at)
		if width == 0 {
			return
		}
		l.at += width
	}
}

func (l *locator) blanks() {
	for l.peek() == ' ' || l.peek() == '\t' {
		l.at++
	}
}

// lineStart is where the line that holds the offset begins, behind the byte order mark.
func (l *locator) lineStart(at int) int { return lineStart(l.src, at) }

// beginsLine says whether there are only blanks before the offset.
func (l *locator) beginsLine(at int) bool {
	return len(bytes.TrimLeft(l.src[l.lineStart(at):at], " \t")) == 0
}
