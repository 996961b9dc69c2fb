package yamltext

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// documentComments writes the comments of the document itself: those above and below its content, which blank lines separate
// from that.
func (r *rewriter) documentComments(s *splicer) {
	want := r.wantDocument
	if want == nil || want.Kind != yaml.DocumentNode || content(r.document) == nil {
		return
	}
	have := r.document
	if changed(have.HeadComment, want.HeadComment) {
		from, to := r.top()
		lines := commentLines(want.HeadComment, "")
		if len(lines) == 0 {
			to = r.behindEmpty(from, to)
		} else if from == to {
			lines = append(lines, "", "")
		}
		s.edit(from, to, strings.Join(lines, s.write.newline))
	}
	if changed(have.FootComment, want.FootComment) {
		from, to := r.bottom()
		lines := commentLines(want.FootComment, "")
		switch {
		case len(lines) > 0 && from == to:
			lines = append([]string{"", ""}, lines...)
		case len(lines) > 0:
			lines = append([]string{""}, lines...)
		case from < to:
			from = r.root.tail(r.src)
		}
		s.edit(from, to, strings.Join(lines, s.write.newline))
	}
}

// behindEmpty is where the empty lines end that follow a comment, which go with it.
func (r *rewriter) behindEmpty(from, to int) int {
	if from == to {
		return to
	}
	for to = nextLine(r.src, to); to < len(r.src) && isEmpty(r.src, to); {
		to = nextLine(r.src, to)
	}
	return to
}

// top is where the comment above the content stands, or shall stand.
func (r *rewriter) top() (from, to int) {
	start := r.root.start
	if r.root.entries != nil {
		start = r.root.entries[0].head
	}
	from = 0
	if strings.HasPrefix(string(r.src), byteOrderMark) {
		from = len(byteOrderMark)
	}
	if at := strings.Index(string(r.src[from:start]), r.document.HeadComment); at >= 0 && r.document.HeadComment != "" {
		return from + at, from + at + len(r.document.HeadComment)
	}
	if line := nextLine(r.src, r.content); r.content > from && line <= start {
		return line, line
	}
	return from, from
}

// bottom is where the comment below the content stands, or shall stand.
func (r *rewriter) bottom() (from, to int) {
	tail := r.root.tail(r.src)
	foot := r.document.FootComment
	if at := strings.Index(string(r.src[tail:]), foot); at >= 0 && foot != "" {
		return lineEnd(r.src, previousLine(r.src, lineStart(r.src, tail+at))), tail + at + len(foot)
	}
	return tail, tail
}
