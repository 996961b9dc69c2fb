package yamltext

import (
	"cmp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// NoComment takes out the comment that stands in the text, where it is the comment of a node that is wanted. One that is empty
// leaves it: nodes made anew have none, and the comments that people wrote are not theirs to delete.
const NoComment = "#\x00"

func headComment(node *yaml.Node) string { return node.HeadComment }
func lineComment(node *yaml.Node) string { return node.LineComment }
func footComment(node *yaml.Node) string { return node.FootComment }

// comment is a comment of the entry, which may hang on its key or on its value.
func (it *item) comment(i int, of func(*yaml.Node) string) string {
	if it.node.Kind == yaml.MappingNode {
		return cmp.Or(of(it.kids[2*i].node), of(it.kids[2*i+1].node))
	}
	return of(it.kids[i].node)
}

// comment is that of an entry that is wanted. It is NoComment only if neither key nor value has another.
func (t *twig) comment(i int, of func(*yaml.Node) string) string {
	if t.node.Kind != yaml.MappingNode {
		return of(t.kids[i].node)
	}
	key, value := of(t.kids[2*i].node), of(t.kids[2*i+1].node)
	if commentText(key) == "" {
		return cmp.Or(value, key)
	}
	return key
}

// commentText is what there is to write of a comment.
func commentText(comment string) string {
	if comment == NoComment {
		return ""
	}
	return comment
}

// changed says whether a comment is to be another.
func changed(have, want string) bool { return want != "" && commentText(want) != have }

// otherComments says whether any of a node's comments is to be another.
func otherComments(have, want *yaml.Node) bool {
	return changed(have.HeadComment, want.HeadComment) || changed(have.LineComment, want.LineComment) ||
		changed(have.FootComment, want.FootComment)
}

// commentLines writes a comment of several lines; empty lines may be between.
func commentLines(comment, prefix string) []string {
	comment = strings.Trim(commentText(comment), "\n")
	if comment == "" {
		return nil
	}
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		if line = oneLine(line); line != "" {
			line = prefix + line
		}
		lines[i] = line
	}
	return lines
}

// oneLine is a comment on one line that the parser reads: with its sign, and without what does not print.
func oneLine(comment string) string {
	comment = strings.TrimSpace(strings.ReplaceAll(strings.Trim(commentText(comment), "\n"), "\n", " "))
	if comment == "" {
		return ""
	}
	if comment[0] != '#' {
		comment = "# " + comment
	}
	var out strings.Builder
	for _, r := range comment {
		if printable(r) {
			out.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}
