package kpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt/yamltext"
	"sluice.dev/sluice/internal/printable"
)

// document is one of those in a file of YAML.
type document struct {
	// text is all of it, from the line that parts it from the document before to the one that parts it from the next.
	text []byte
	// line is where in the file it begins, counted from 1.
	line int
	// root is the document's node, nil where there is nothing but comments; state is what it said when it was read.
	root  *yaml.Node
	state [sha256.Size]byte
	// item says that it was read as an item.
	item bool
}

// split cuts the text of a file into its documents.
func split(name string, content []byte) ([]*document, error) {
	parts, err := yamltext.Split(content)
	if err != nil {
		return nil, &SyntaxError{File: name, Line: 1, Problem: err.Error()}
	}
	documents := make([]*document, len(parts))
	for i, part := range parts {
		documents[i] = &document{text: part.Text, line: part.Line}
	}
	return documents, nil
}

// parse reads what the document says, and remembers it.
func (d *document) parse() error {
	err := d.read()
	if err == nil && d.root != nil {
		d.state = stateOf(d.root)
	}
	return err
}

// read reads what the document says.
func (d *document) read() error {
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	root := &yaml.Node{}
	if err := decoder.Decode(root); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		// Readers do not agree on what a line break is, beyond those that everybody writes.
		return errors.New("there is more than one document, and no line of --- between them")
	}
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		d.root = root
	}
	return nil
}

// stateOf tells apart whatever would be written differently.
func stateOf(node *yaml.Node) [sha256.Size]byte { return sha256.Sum256(appendState(nil, node)) }

// appendState writes down all of the node, one part after the other. It does not follow aliases: what they stand for is
// elsewhere in the document.
func appendState(state []byte, node *yaml.Node) []byte {
	state = binary.AppendUvarint(state, uint64(node.Kind))
	state = binary.AppendUvarint(state, uint64(node.Style))
	for _, word := range [...]string{node.Tag, node.Value, node.Anchor, node.HeadComment, node.LineComment, node.FootComment} {
		state = binary.AppendUvarint(state, uint64(len(word)))
		state = append(state, word...)
	}
	state = binary.AppendUvarint(state, uint64(len(node.Content)))
	for _, child := range node.Content {
		state = appendState(state, child)
	}
	return state
}

// mapping is what the document is about, nil unless it is a map.
func (d *document) mapping() *yaml.Node {
	if d.root == nil || d.root.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return d.root.Content[0]
}

// isObject tells whether the document is an object of Kubernetes' kind.
func (d *document) isObject() bool {
	mapping := d.mapping()
	return Text(mapping, "apiVersion") != "" && Text(mapping, "kind") != ""
}

// lineOf is how the library that reads YAML says where something is.
var lineOf = regexp.MustCompile(`^yaml: line (\d+): `)

// explain says where in the file the error is that reading the document gave.
func (d *document) explain(file string, err error) error {
	line, text := d.line, strings.TrimPrefix(err.Error(), "yaml: ")
	if found := lineOf.FindStringSubmatch(err.Error()); found != nil {
		below, _ := strconv.Atoi(found[1]) // The pattern has digits alone; 0 for more than there can be.
		line, text = d.line+max(below-1, 0), err.Error()[len(found[0]):]
	}
	return &SyntaxError{File: file, Line: line, Problem: printable.Line(text, 200)}
}

// SyntaxError says what cannot be read, and where.
type SyntaxError struct {
	// File is the path below the package's root, and Line counts from 1.
	File string
	Line int
	// Problem is one line that says what is wrong.
	Problem string
}

// problem is one with a node of the resource.
func (r *Resource) problem(node *yaml.Node, text string) error {
	line := node.Line
	if r.origin != nil {
		line = r.origin.line + max(line-1, 0)
	}
	return &SyntaxError{File: r.File, Line: line, Problem: text}
}

// Error says where, and then what.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem) }
