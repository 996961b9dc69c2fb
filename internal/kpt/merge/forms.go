package merge

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxDepth bounds how deep values stand in each other.
const maxDepth = 500

// forms gives nodes numbers that are equal where they say the same, so that whole trees are compared at once.
type forms struct {
	numbers map[string]int
	of      map[*yaml.Node]form
}

// form is the number of what a node says, whatever the order of its keys and the way it is written, and of what it looks like:
// with its comments and in its order.
type form struct {
	says, looks int
}

func newForms() *forms {
	return &forms{numbers: map[string]int{}, of: map[*yaml.Node]form{}}
}

// add numbers the node and all beneath it. There are no aliases in it.
func (f *forms) add(node *yaml.Node, depth int) (form, error) {
	if depth > maxDepth {
		return form{}, fmt.Errorf("%w: more than %d values stand in each other", ErrTooComplex, maxDepth)
	}
	says, looks := []byte{}, []byte{}
	pairs := make([]string, 0, len(node.Content)/2)
	key := form{}
	for i, child := range node.Content {
		found, err := f.add(child, depth+1)
		if err != nil {
			return form{}, err
		}
		looks = appendNumber(looks, found.looks)
		switch {
		case node.Kind != yaml.MappingNode:
			says = appendNumber(says, found.says)
		case i%2 == 0:
			key = found
		default:
			pairs = append(pairs, string(appendNumber(appendNumber(nil, key.says), found.says)))
		}
	}
	slices.Sort(pairs)
	word := words(node)
	found := form{
		says:  f.number(word + string(says) + strings.Join(pairs, "")),
		looks: f.number("looks\x00" + word + node.HeadComment + "\x00" + node.LineComment + "\x00" + node.FootComment + "\x00" + string(looks)),
	}
	f.of[node] = found
	return found, nil
}

func appendNumber(to []byte, number int) []byte {
	return binary.BigEndian.AppendUint64(to, uint64(number)) //nolint:gosec // Numbers count upwards from 1.
}

// words is what the node alone says. Lengths go first, so that no text can look like the end of it.
func words(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "map\x00" + node.ShortTag() + "\x00"
	case yaml.SequenceNode:
		return "list\x00" + node.ShortTag() + "\x00"
	default:
	}
	tag, value := node.ShortTag(), node.Value
	switch tag {
	case yaml.NodeTagNull:
		value = ""
	case yaml.NodeTagBool:
		value = strings.ToLower(value)
	}
	return fmt.Sprintf("%s\x00%d\x00%s", tag, len(value), value)
}

func (f *forms) number(text string) int {
	number, found := f.numbers[text]
	if !found {
		number = len(f.numbers) + 1
		f.numbers[text] = number
	}
	return number
}

// same tells whether both say the same, or are both missing.
func (f *forms) same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return f.of[a].says == f.of[b].says
}

// alike tells whether both say the same, in the same order and with the same comments.
func (f *forms) alike(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return f.of[a].looks == f.of[b].looks
}
