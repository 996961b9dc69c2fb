package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// ErrManyDocuments is returned for a text of more than one document; Split cuts it apart.
var ErrManyDocuments = errors.New("the text holds more than one document")

// parse reads the one document of the text. A text without content is a zero node.
func parse(src []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	var node, more yaml.Node
	if err := decoder.Decode(&node); err != nil {
		if errors.Is(err, io.EOF) {
			return &node, nil
		}
		return nil, fmt.Errorf("parse the text: %w", err)
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, ErrManyDocuments
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("parse the text: %w", err)
	}
	return &node, nil
}

// item is a node and where in the text it stands.
type item struct {
	node *yaml.Node
	// start is where the text of the node begins, with its anchor and tag; body where what follows those begins; end where
	// it ends. A node without any text has them all at one place.
	start, body, end int
	// properties is where the anchor and the tag end, or 0 if there are none.
	properties int
	// kids are the nodes below, in the order of the node's content: in a mapping keys and values take turns.
	kids []item
	// entries are the elements of a block sequence, or the pairs of a block mapping; nil for all else.
	entries []entry
	// column is how far the entries are indented, in bytes.
	column int
	// bare is a pair in a flow sequence that is a mapping without braces.
	bare bool
	prints
}

// entry is one element of a block sequence or one pair of a block mapping, with what belongs to it.
type entry struct {
	// head is where the comments above the entry begin, at the beginning of a line; start where the entry itself begins; tail
	// where its last line ends, before the line break, the comments right below it included.
	head, start, tail int
	// own is where the last line of the entry ends without the comments below it.
	own int
	// after is behind the indicator that the value follows: a dash, or a colon. It is 0 where there is no colon.
	after int
	// inner says that the entry does not begin a line of its own: the first of a collection right behind a dash.
	inner bool
	// explicit says that the key has a question mark before it.
	explicit bool
}

// value is the item that the entry's value is.
func (it *item) value(i int) *item {
	if it.node.Kind == yaml.MappingNode {
		return &it.kids[2*i+1]
	}
	return &it.kids[i]
}

// tail is where the last line of the item ends, with the comments below it that belong to it.
func (it *item) tail(src []byte) int {
	if len(it.entries) > 0 {
		return it.entries[len(it.entries)-1].tail
	}
	return lineEnd(src, it.end)
}
