package yamltext

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ErrMalformed is returned for a tree of nodes that is no YAML document.
var ErrMalformed = errors.New("the nodes are no YAML document")

// ErrDeep is returned for nodes that are nested deeper than anybody nests them. Written as blocks, such a document would be
// indentation for the most part, and could be made to fill all memory.
var ErrDeep = errors.New("the nodes are nested too deep")

// deepest is how deep nodes may be nested.
const deepest = 500

// twig is a node of the document that is wanted.
type twig struct {
	node *yaml.Node
	kids []twig
	// commented says that nodes below have comments.
	commented bool
	prints
}

// count finds out whether the twig is commented, when all below are known.
func (t *twig) count() {
	t.commented = false
	for i := range t.kids {
		if t.kids[i].commented || isCommented(t.kids[i].node) {
			t.commented = true
			return
		}
	}
}

func isCommented(node *yaml.Node) bool {
	return node.HeadComment != "" || node.LineComment != "" || node.FootComment != ""
}

// prints tell nodes apart.
type prints struct {
	// said stands for what the node says, and full for that, its comments and its anchor as well.
	said, full uint64
}

// grower makes twigs.
type grower struct {
	seed maphash.Seed
}

// grow makes the twig of the node. Nodes that are missing or zero are null, and documents are what they hold.
func (g grower) grow(node *yaml.Node, depth int) (twig, error) {
	node = content(node)
	if node == nil || node.Kind == 0 {
		node = null(node)
	}
	t := twig{node: node}
	if err := check(node, depth); err != nil {
		return t, err
	}
	if len(node.Content) > 0 {
		t.kids = make([]twig, len(node.Content))
	}
	for i, child := range node.Content {
		kid, err := g.grow(child, depth+1)
		if err != nil {
			return t, err
		}
		t.kids[i] = kid
	}
	t.prints = g.prints(node)
	for i := range t.kids {
		t.add(t.kids[i].prints)
	}
	t.count()
	return t, nil
}

// mark gives the item and all below it their prints.
func (g grower) mark(it *item) {
	it.prints = g.prints(it.node)
	for i := range it.kids {
		g.mark(&it.kids[i])
		it.add(it.kids[i].prints)
	}
}

// prints of a node without its children.
func (g grower) prints(node *yaml.Node) prints {
	var p prints
	switch node.Kind {
	case yaml.ScalarNode, yaml.AliasNode:
		p.said = g.hash(spoken(node), value(node))
	default:
		p.said = g.hash(node.ShortTag())
	}
	p.said = mix(p.said, uint64(node.Kind))
	p.full = p.said
	if isQuoted(node) && ambiguous(node.Value) {
		p.full = mix(p.full, 1)
	}
	if node.Anchor != "" || isCommented(node) {
		p.full = mix(p.full, g.hash(node.Anchor, node.HeadComment, node.LineComment, node.FootComment))
	}
	return p
}

// add takes a child's prints in.
func (p *prints) add(kid prints) {
	p.said = mix(p.said, kid.said)
	p.full = mix(p.full, kid.full)
}

func (g grower) hash(texts ...string) uint64 {
	var sum uint64
	for _, text := range texts {
		sum = mix(sum, maphash.String(g.seed, text))
	}
	return sum
}

// mix makes one print of two, in their order. The multiplier is odd and has its bits spread.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return bits.RotateLeft64(high^low, 23) + b*0xa0761d6478bd642f
}

// check refuses what cannot be written.
func check(node *yaml.Node, depth int) error {
	switch {
	case depth > deepest:
		return fmt.Errorf("%w: more than %d", ErrDeep, deepest)
	case node.Kind == yaml.MappingNode && len(node.Content)%2 != 0:
		return fmt.Errorf("%w: a mapping has a key without a value", ErrMalformed)
	case node.Kind == yaml.AliasNode && node.Value == "":
		return fmt.Errorf("%w: an alias has no name", ErrMalformed)
	case node.Kind == yaml.ScalarNode && !utf8.ValidString(node.Value):
		return fmt.Errorf("%w: a scalar is not UTF-8", ErrMalformed)
	case node.Kind != yaml.ScalarNode && node.Kind != yaml.AliasNode && node.Kind != yaml.MappingNode && node.Kind != yaml.SequenceNode:
		return fmt.Errorf("%w: a node is of kind %d", ErrMalformed, node.Kind)
	}
	return nil
}

// content is the node that a document holds.
func content(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.DocumentNode {
		if len(node.Content) == 0 {
			return nil
		}
		node = node.Content[0]
	}
	return node
}

// null is a node for one that says nothing, with the comments of that.
func null(node *yaml.Node) *yaml.Node {
	empty := yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag, Value: "null"}
	if node != nil {
		empty.HeadComment, empty.LineComment, empty.FootComment = node.HeadComment, node.LineComment, node.FootComment
	}
	return &empty
}
