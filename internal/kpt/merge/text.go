package merge

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxText bounds the text that is merged line by line.
const maxText = 1 << 20

// hunk are lines that both sides changed in different ways, or lines beside each other.
type hunk struct {
	// line is the number of the first one in local's text, from 1, and texts are the lines of the sides.
	line  int
	texts [sides]string
}

// mergeText merges line by line. In a hunk that both sides changed, one side counts.
func mergeText(base, theirs, local []byte, takesUpstream bool) (merged []byte, clashes []hunk) {
	for _, text := range [][]byte{base, theirs, local} {
		if len(text) > maxText || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			clash := []hunk{{line: 1, texts: [sides]string{string(base), string(theirs), string(local)}}}
			if takesUpstream {
				return theirs, clash
			}
			return local, clash
		}
	}
	return mergeLines(linesOf(base), linesOf(theirs), linesOf(local), takesUpstream)
}

func linesOf(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// mergeLines goes from one line that all sides have to the next.
func mergeLines(base, theirs, local []string, takesUpstream bool) (merged []byte, clashes []hunk) {
	numbers := map[string]int{}
	says := func(lines []string) []int {
		found := make([]int, len(lines))
		for i, line := range lines {
			if numbers[line] == 0 {
				numbers[line] = len(numbers) + 1
			}
			found[i] = numbers[line]
		}
		return found
	}
	inBase, inTheirs, inLocal := says(base), says(theirs), says(local)
	toLocal := map[int]int{}
	for _, found := range common(inBase, inLocal) {
		toLocal[found.a] = found.b
	}
	out := strings.Builder{}
	b, t, l := 0, 0, 0
	between := func(toB, toT, toL int) {
		was, up, mine := strings.Join(base[b:toB], ""), strings.Join(theirs[t:toT], ""), strings.Join(local[l:toL], "")
		text := mine
		switch {
		case was == up || up == mine:
		case was == mine:
			text = up
		default:
			clashes = append(clashes, hunk{line: l + 1, texts: [sides]string{was, up, mine}})
			if takesUpstream {
				text = up
			}
		}
		_, _ = out.WriteString(text) // A builder takes everything.
	}
	for _, found := range append(common(inBase, inTheirs), pair{len(base), len(theirs)}) {
		at, both := toLocal[found.a]
		if found.a == len(base) {
			at, both = len(local), true
		}
		if !both {
			continue
		}
		between(found.a, found.b, at)
		if found.a < len(base) {
			_, _ = out.WriteString(base[found.a])
		}
		b, t, l = found.a+1, found.b+1, at+1
	}
	return []byte(out.String()), clashes
}

// isText tells whether all are texts, and what was there before has several lines. Values in base64 are no texts: lines of two
// of them do not make a third.
func isText(at *place, base *yaml.Node, others ...*yaml.Node) bool {
	for _, node := range append(others, base) {
		if node == nil || node.Kind != yaml.ScalarNode || node.ShortTag() != yaml.NodeTagString {
			return false
		}
	}
	isBase64 := at.above != nil && (at.above.step == ".binaryData" || at.above.step == ".data" && at.secret)
	return !isBase64 && strings.Contains(strings.TrimSuffix(base.Value, "\n"), "\n")
}

// mergeLinesOf is the text that local's changes and upstream's make together. Every hunk that both changed is a conflict.
func (m *merger) mergeLinesOf(base, theirs, local *yaml.Node, at *place) *yaml.Node {
	merged, clashes := mergeText([]byte(base.Value), []byte(theirs.Value), []byte(local.Value), m.takesUpstream)
	for _, clash := range clashes {
		var shown [sides]*yaml.Node
		for of, text := range clash.texts {
			if text != "" {
				shown[of] = &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: strings.TrimSuffix(text, "\n")}
			}
		}
		m.conflict(at.below(fmt.Sprintf("[line %d]", clash.line), nil), shown[inBase], shown[inTheirs], shown[inLocal])
	}
	text := *theirs
	text.Value = string(merged)
	return m.replace(base, &text, local, at)
}
