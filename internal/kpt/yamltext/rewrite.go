// Package yamltext changes the text of a YAML document so that it says something else, and leaves every byte alone that need
// not change: comments, blank lines, quotes, indentation and line ends.
// It does not know what documents are about.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errUnsaid says that a text does not say what is wanted.
var errUnsaid = errors.New("the text says something else")

// Rewrite is the text of the wanted document, made from src, the text of one document. Want is the document's node or the one
// below it, mostly parsed from src and then changed; its nodes may be new as well, and their positions mean nothing. Neither is
// changed; if nothing has to be, src itself is returned.
//
// What want says is what the result says: values, types, order, anchors and aliases. A string stays one for readers of YAML 1.1
// too. Comments of want that are not in src are written; where want has none, those of src stay, unless what they belong to goes,
// or want has NoComment there.
// Styles are those of src, and for what is new those of want.
func Rewrite(src []byte, want *yaml.Node) ([]byte, error) {
	document, err := parse(src)
	if err != nil {
		return nil, err
	}
	g := grower{seed: maphash.MakeSeed()}
	wanted, err := g.grow(defined(want), 0)
	if err != nil {
		return nil, err
	}
	r := rewriter{src: src, document: document, want: wanted, wantDocument: want}
	out, _, err := r.rewrite(g)
	return out, err
}

// smallest asks for the smallest changes, anewed for the whole document.
const (
	smallest = deepest + 1
	all      = 0
)

// rewrite returns the text, and from which depth on what changed was written anew.
func (r *rewriter) rewrite(g grower) (out []byte, whole int, err error) {
	if r.document.Kind == 0 {
		out, err := r.fill()
		return out, smallest, err
	}
	if r.unchanged() {
		return r.src, smallest, nil
	}
	if err := r.read(g); err == nil {
		// Where the smallest change does not do, ever larger parts are written anew.
		for _, whole := range []int{smallest, 4, 2, 1} {
			if out, err := r.splice(whole); err == nil {
				return out, whole, nil
			}
		}
	}
	out, err = r.anew()
	return out, all, err
}

// rewriter rewrites one document.
type rewriter struct {
	src      []byte
	document *yaml.Node
	want     twig
	// wantDocument may be the document of what is wanted, with its comments.
	wantDocument *yaml.Node
	root         item
	// content is where the document's content may begin: behind its directives and its marker.
	content int
	// limit is where the content and the comments below it end.
	limit int
	write writer
}

// read finds out where everything stands.
func (r *rewriter) read(g grower) error {
	l := locator{src: r.src}
	l.prologue()
	r.content = l.at
	r.write = writer{newline: newline(r.src), step: 2}
	root, err := l.locate(r.document.Content[0], -1)
	if err != nil {
		return err
	}
	for step, count := range l.steps {
		if count > l.steps[r.write.step] {
			r.write.step = step
		}
	}
	r.write.wide = l.wide > l.narrow
	l.skip()
	r.limit = l.at
	if rest := r.src[l.at:]; len(rest) > 0 && !isMarker(rest[:lineEnd(rest, 0)], "...") {
		return errLost
	}
	layout{src: r.src}.measure(&root, r.content, r.limit)
	g.mark(&root)
	r.root = root
	return nil
}

// unchanged says whether the text says what is wanted as it is.
func (r *rewriter) unchanged() bool {
	if want := r.wantDocument; want != nil && want.Kind == yaml.DocumentNode && otherComments(r.document, want) {
		return false
	}
	return unchanged(r.document.Content[0], &r.want)
}

func unchanged(have *yaml.Node, want *twig) bool {
	if len(have.Content) != len(want.kids) || !saysItself(have, want.node) || otherComments(have, want.node) {
		return false
	}
	for i := range have.Content {
		if !unchanged(have.Content[i], &want.kids[i]) {
			return false
		}
	}
	return true
}

// splice changes what has to be and checks the result.
func (r *rewriter) splice(whole int) ([]byte, error) {
	s := splicer{src: r.src, write: r.write, whole: whole}
	if !s.node(&r.root, &r.want, 0) {
		r.replaceRoot(&s)
	}
	r.documentComments(&s)
	if len(s.edits) == 0 {
		return r.src, nil
	}
	out, err := apply(r.src, 0, len(r.src), s.edits)
	if err != nil {
		return nil, err
	}
	if r.checkRegion(s.edits) {
		return out, nil
	}
	err = r.check(out)
	if err != nil && !endsWithBreak(out) {
		// The last line of a block scalar may want a break.
		out = append(out, r.write.newline...)
		err = r.check(out)
	}
	return out, err
}

// replaceRoot writes the whole content anew, in its place.
func (r *rewriter) replaceRoot(s *splicer) {
	from, to := r.root.start, r.root.tail(r.src)
	block := r.root.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch {
	case r.root.start == r.root.end:
		r.fillEmpty(s)
		return
	case r.root.entries != nil && r.root.properties == 0:
		from = r.root.entries[0].head
	case r.root.entries == nil && !block:
		// A comment behind the value stays.
		to = r.root.end
	}
	want := r.adopted(from)
	text := strings.Join(r.lines(want), r.write.newline)
	alone := len(bytes.TrimLeft(r.src[lineStart(r.src, from):from], " \t")) == 0
	below := lineEnd(r.src, to)
	switch {
	case len(r.write.value(want, place{column: -1}).below) == 0, alone && to == below:
		s.edit(from, to, text)
	default:
		// No block may begin behind the marker, and none before a comment.
		s.edit(r.content, to, "")
		s.edit(below, below, r.write.newline+text)
	}
}

// adopted is what is wanted with the comments of what there is, but for a comment that stays above.
func (r *rewriter) adopted(from int) *twig {
	want := adopt(&r.root, &r.want)
	if len(want.kids) == 0 {
		return want
	}
	head := want.kids[0].node.HeadComment
	if head == "" || !bytes.Contains(r.src[:from], []byte(head)) {
		return want
	}
	first, adopted := *want.kids[0].node, *want
	first.HeadComment = ""
	adopted.kids = append([]twig(nil), want.kids...)
	adopted.kids[0].node = &first
	return &adopted
}

// fillEmpty writes the content below the comments of a document that has none.
func (r *rewriter) fillEmpty(s *splicer) {
	text := strings.Join(r.lines(&r.want), r.write.newline)
	if r.limit > 0 && endsWithBreak(r.src[:r.limit]) {
		s.edit(r.limit, r.limit, text+r.write.newline)
		return
	}
	s.edit(r.limit, r.limit, r.write.newline+text)
}

// check says whether the text says what is wanted.
func (r *rewriter) check(text []byte) error {
	document, err := parse(text)
	if err != nil {
		return err
	}
	if document.Kind == 0 || !says(document.Content[0], &r.want) {
		return errUnsaid
	}
	return nil
}

// says compares a node with what is wanted.
func says(have *yaml.Node, want *twig) bool {
	if len(have.Content) != len(want.kids) || !saysItself(have, want.node) {
		return false
	}
	for i := range have.Content {
		if !says(have.Content[i], &want.kids[i]) {
			return false
		}
	}
	return true
}

// saysItself is says without the nodes below.
func saysItself(have, want *yaml.Node) bool {
	if have.Kind != want.Kind || want.Anchor != "" && have.Anchor != want.Anchor {
		return false
	}
	switch have.Kind {
	case yaml.ScalarNode:
		return sameScalar(have, want)
	case yaml.AliasNode:
		return have.Value == want.Value
	default:
		return have.ShortTag() == want.ShortTag()
	}
}

// fill writes a document into a text that has no content.
func (r *rewriter) fill() ([]byte, error) {
	if spoken(r.want.node) == nullTag {
		return r.src, nil
	}
	r.write = writer{newline: newline(r.src), step: 2}
	text := string(r.src)
	if text != "" && !endsWithBreak(r.src) {
		text += r.write.newline
	}
	out := []byte(text + r.text(&r.want))
	return out, r.check(out)
}

// anew writes the whole document anew, behind its directives and its marker.
func (r *rewriter) anew() ([]byte, error) {
	want := &r.want
	if r.root.node != nil {
		want = r.adopted(r.content)
	}
	before := string(r.src[:r.content])
	if r.content > 0 && !endsWithBreak(r.src[:r.content]) && before != byteOrderMark {
		before += r.write.newline
	}
	head := strings.Join(commentLines(r.document.HeadComment, ""), r.write.newline)
	if head != "" {
		head += r.write.newline + r.write.newline
	}
	if bytes.Contains(r.src[:r.content], []byte(r.document.HeadComment)) {
		head = ""
	}
	foot := strings.Join(commentLines(r.document.FootComment, ""), r.write.newline)
	if foot != "" {
		foot = r.write.newline + foot + r.write.newline
	}
	out := []byte(before + head + r.text(want) + foot)
	err := r.check(out)
	if err == nil {
		return out, nil
	}
	if out, lastErr := yaml.Marshal(plainTree(want)); lastErr == nil && r.check(out) == nil {
		return out, nil
	}
	return nil, fmt.Errorf("write the document: %w", err)
}

// text writes a document's content.
func (r *rewriter) text(want *twig) string {
	return strings.Join(r.lines(want), r.write.newline) + r.write.newline
}

func (r *rewriter) lines(want *twig) []string {
	written := r.write.value(want, place{column: -1})
	if written.inline == "" {
		return written.below
	}
	return append([]string{written.inline}, written.below...)
}

// plainTree is the tree of the twigs.
func plainTree(t *twig) *yaml.Node {
	node := *t.node
	node.Content = make([]*yaml.Node, len(t.kids))
	for i := range t.kids {
		node.Content[i] = plainTree(&t.kids[i])
	}
	return &node
}

// newline is the line break of the text.
func newline(src []byte) string {
	if at := bytes.IndexByte(src, '\n'); at > 0 && src[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
