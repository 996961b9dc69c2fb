package yamltext

import (
	"errors"
	"fmt"
	"hash/maphash"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ErrMalformed is returned for a tree of nodes that is no YAML document.
var ErrMalformed = errors.New("the nodes are no YAML document")

// deepest is how deep nodes may be nested; the parser reads no more.
const deepest = 10000

// twig is a node of the document that is wanted.
type twig struct {
	node *yaml.Node
	kids []twig
	prints
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
	t.prints = g.prints(node, len(t.kids), func(i int) prints { return t.kids[i].prints })
	return t, nil
}

// mark gives the item and all below it their prints.
func (g grower) mark(it *item) {
	for i := range it.kids {
		g.mark(&it.kids[i])
	}
	it.prints = g.prints(it.node, len(it.kids), func(i int) prints { return it.kids[i].prints })
}

// prints of a node, given those of its children.
func (g grower) prints(node *yaml.Node, kids int, kid func(int) prints) prints {
	var said, full maphash.Hash
	said.SetSeed(g.seed)
	full.SetSeed(g.seed)
	write(&said, byte(node.Kind), spoken(node), value(node))
	for i := range kids {
		p := kid(i)
		maphash.WriteComparable(&said, p.said)
		maphash.WriteComparable(&full, p.full)
	}
	p := prints{said: said.Sum64()}
	maphash.WriteComparable(&full, p.said)
	quoted := byte(0)
	if isQuoted(node) && ambiguous(node.Value) {
		quoted = 1
	}
	write(&full, quoted, node.Anchor, node.HeadComment, node.LineComment, node.FootComment)
	p.full = full.Sum64()
	return p
}

// write adds texts to the hash, so that no two lists of texts are alike.
func write(hash *maphash.Hash, kind byte, texts ...string) {
	hash.WriteByte(kind) //nolint:errcheck // A hash takes everything.
	for _, text := range texts {
		maphash.WriteComparable(hash, len(text))
		hash.WriteString(text) //nolint:errcheck // A hash takes everything.
	}
}

// check refuses what cannot be written.
func check(node *yaml.Node, depth int) error {
	switch {
	case depth > deepest:
		return fmt.Errorf("%w: they are nested more than %d deep", ErrMalformed, deepest)
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
