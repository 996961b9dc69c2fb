package yamltext

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flow makes the edits inside a flow collection.
func (s *splicer) flow(it *item, t *twig, depth int) bool {
	f := flowSplicer{splicer: s, it: it, t: t, depth: depth, pair: 1}
	a := alignSequence
	if t.node.Kind == yaml.MappingNode {
		f.pair, a = 2, alignMapping
	}
	f.a = a(it.kids, t.kids)
	f.quotes = quotes(it)
	return f.run()
}

// flowSplicer makes the edits inside one flow collection.
type flowSplicer struct {
	*splicer
	it *item
	t  *twig
	a  *alignment
	// pair is how many nodes an element is of.
	pair, depth int
	quotes      yaml.Style
}

func (f *flowSplicer) run() bool {
	stays := make([]bool, len(f.a.kept))
	first, same := unmatched, len(f.a.from) == len(stays)
	for j, i := range f.a.from {
		if f.a.stays[j] {
			stays[i] = true
			if first == unmatched {
				first = i
			}
		} else {
			same = false
		}
	}
	if first == unmatched || !same && f.it.bare {
		return false
	}
	var before strings.Builder
	last := unmatched
	for j, i := range f.a.from {
		if i != unmatched && f.a.stays[j] {
			if !f.element(i, j) {
				return false
			}
			last = i
			continue
		}
		text, ok := f.text(i, j)
		switch {
		case !ok:
			return false
		case last == unmatched:
			before.WriteString(text + f.separator())
		default:
			f.edit(f.end(last), f.end(last), f.separator()+text)
		}
	}
	if before.Len() > 0 {
		f.edit(f.start(first), f.start(first), before.String())
	}
	return f.removeElements(stays)
}

func (f *flowSplicer) start(i int) int { return f.it.kids[i*f.pair].start }
func (f *flowSplicer) end(i int) int   { return f.it.kids[i*f.pair+f.pair-1].end }

// element makes the edits inside an element that is kept.
func (f *flowSplicer) element(i, j int) bool {
	for k := range f.pair {
		have, want := &f.it.kids[i*f.pair+k], &f.t.kids[j*f.pair+k]
		if otherComments(have.node, want.node) {
			return false
		}
		if f.node(have, want, f.depth+1) {
			continue
		}
		if k+1 < f.pair || want.commented {
			return false
		}
		text := f.write.value(want, place{flow: true, instead: have.node, quotes: f.quotes}).inline
		switch {
		case have.start < have.end:
			f.edit(have.start, have.end, text)
		case have.start > 0 && f.src[have.start-1] == ':':
			blank := min(1, len(f.src)-have.start, len(f.src[have.start:])-len(bytes.TrimLeft(f.src[have.start:], " ")))
			f.edit(have.start, have.start+blank, " "+text)
		default:
			f.edit(have.start, have.start, ": "+text)
		}
	}
	return true
}

// text is a new element, or one that moves.
func (f *flowSplicer) text(i, j int) (string, bool) {
	if i != unmatched {
		return f.within(f.start(i), f.end(i), func() bool { return f.element(i, j) })
	}
	for k := range f.pair {
		if want := &f.t.kids[j*f.pair+k]; want.commented || isCommented(want.node) {
			return "", false
		}
	}
	at := place{flow: true, quotes: f.quotes}
	var out strings.Builder
	if f.pair == 2 {
		f.write.flowPair(&out, &f.t.kids[2*j], &f.t.kids[2*j+1], at)
	} else {
		f.write.flow(&out, &f.t.kids[j], at)
	}
	return out.String(), true
}

// separator is what stands between two elements.
func (f *flowSplicer) separator() string {
	if len(f.a.kept) > 1 {
		if gap := string(f.src[f.end(0):f.start(1)]); strings.Trim(gap, " \t\r\n") == "," {
			return gap
		}
		return ", "
	}
	open := f.it.body + 1
	if gap := string(f.src[open:max(open, f.start(0))]); strings.Contains(gap, "\n") && strings.Trim(gap, " \t\r\n") == "" {
		return "," + gap
	}
	return ", "
}

// removeElements deletes the elements that do not stay. Comments between them are not told apart.
func (f *flowSplicer) removeElements(stays []bool) bool {
	kept := unmatched
	for i := 0; i < len(stays); i++ {
		if stays[i] {
			kept = i
			continue
		}
		first := i
		for i+1 < len(stays) && !stays[i+1] {
			i++
		}
		from, to := f.start(first), f.end(i)
		if i+1 < len(stays) {
			to = f.start(i + 1)
		} else if kept != unmatched {
			from = f.end(kept)
		}
		if strings.Contains(string(f.src[from:to]), "#") {
			return false
		}
		f.edit(from, to, "")
	}
	return true
}

// quotes is the style that all strings at hand in the collection have, if they have quotes.
func quotes(it *item) yaml.Style {
	var style yaml.Style
	for i := range it.kids {
		node := it.kids[i].node
		if node.Kind != yaml.ScalarNode || spoken(node) != strTag {
			continue
		}
		next := node.Style & quotedStyles
		if next == 0 || style != 0 && next != style {
			return 0
		}
		style = next
	}
	return style
}
