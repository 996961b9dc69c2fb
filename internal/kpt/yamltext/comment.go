package yamltext

import (
	"cmp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The comments of an entry may hang on its key or on its value.
func headOf(t *twig, i int) string {
	return ofEntry(t, i, func(node *yaml.Node) string { return node.HeadComment })
}

func lineOf(t *twig, i int) string {
	return ofEntry(t, i, func(node *yaml.Node) string { return node.LineComment })
}

func footOf(t *twig, i int) string {
	return ofEntry(t, i, func(node *yaml.Node) string { return node.FootComment })
}

func ofEntry(t *twig, i int, comment func(*yaml.Node) string) string {
	if t.node.Kind == yaml.MappingNode {
		return cmp.Or(comment(t.kids[2*i].node), comment(t.kids[2*i+1].node))
	}
	return comment(t.kids[i].node)
}

// commentLines writes a comment of several lines; empty lines may be between.
func commentLines(comment, prefix string) []string {
	comment = strings.Trim(comment, "\n")
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
	comment = strings.TrimSpace(strings.ReplaceAll(strings.Trim(comment, "\n"), "\n", " "))
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
