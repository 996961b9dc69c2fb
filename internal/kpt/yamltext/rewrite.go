// Package yamltext changes the text of a YAML document so that it says something else, and leaves every byte alone that need
// not change: comments, blank lines, quotes, indentation and line ends.
// It does not know what documents are about.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Rewrite is the text of the wanted document, made from src, the text of one document.
func Rewrite(src []byte, want *yaml.Node) ([]byte, error) {
	have, err := parse(src)
	if err != nil {
		return nil, err
	}
	want = content(want)
	if equal(content(have), want) {
		return src, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(want); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return out.Bytes(), nil
}

// parse reads the one document of the text.
func parse(src []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	var node, more yaml.Node
	if err := decoder.Decode(&node); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("parse the text: %w", err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("parse the text: more than one document")
	}
	return &node, nil
}

// content is the node that a document holds.
func content(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		return node.Content[0]
	}
	return node
}

// equal compares what two nodes say, with their comments.
func equal(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || len(a.Content) != len(b.Content) ||
		a.HeadComment != b.HeadComment || a.LineComment != b.LineComment || a.FootComment != b.FootComment {
		return false
	}
	for i := range a.Content {
		if !equal(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
