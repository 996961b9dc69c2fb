// Package yamlweight finds out what a YAML text of strangers is going to take in memory, before a library reads it.
// It does not know what the text says, nor whether it is YAML at all.
package yamlweight

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/memory"
)

// ErrLimit says that a text stands for too much.
var ErrLimit = errors.New("limit exceeded")

const (
	// byteCost and valueCost are what a byte and a value take at once while the libraries read them, by way of JSON; measured.
	byteCost, valueCost = 12, 600
	// maxGrowth is how much longer a text may become by its aliases; each takes what it stands for anew.
	maxGrowth, maxGrown = 10, 1 << 20
	// maxDocuments bounds the documents of a text that are merged, each of which may copy all before it.
	maxDocuments = 100
)

// Draw draws what it takes to read a text. ErrLimit where its aliases stand for many times its own length, or it has very many
// documents.
func Draw(ctx context.Context, text []byte) error {
	if err := memory.Draw(ctx, cost(text)); err != nil {
		return fmt.Errorf("YAML of %d bytes: %w", len(text), err)
	}
	if documents := bytes.Count(text, []byte("\n---")); documents >= maxDocuments {
		return fmt.Errorf("%w: more than %d documents", ErrLimit, maxDocuments)
	}
	for text := range bytes.SplitSeq(text, []byte("\n---")) {
		if err := CheckAliases(text); err != nil {
			return err
		}
	}
	return nil
}

// cost goes by the characters without which there is no further value.
func cost(text []byte) int64 {
	values := int64(1)
	for _, c := range text {
		switch c {
		case '\n', ',', ':', '-', '?', '[', '{':
			values++
		}
	}
	return byteCost*int64(len(text)) + valueCost*values
}

// CheckAliases refuses a document whose aliases stand for many times its own length, with ErrLimit.
func CheckAliases(text []byte) error {
	if !bytes.Contains(text, []byte{'&'}) || !bytes.Contains(text, []byte{'*'}) {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil //nolint:nilerr // Whoever reads it next says what is wrong with it.
	}
	grown := growth{sizes: map[*yaml.Node]int64{}, most: int64(len(text))*maxGrowth + maxGrown}
	if grown.of(&document) > grown.most {
		return fmt.Errorf("%w: its aliases stand for more than %d bytes", ErrLimit, grown.most)
	}
	return nil
}

// growth measures nodes with what their aliases stand for. No size exceeds the most by much, so that none overflows.
type growth struct {
	sizes map[*yaml.Node]int64 // zero while it is being measured: an alias to what it is part of
	most  int64
}

func (g growth) of(node *yaml.Node) int64 {
	if size, known := g.sizes[node]; known {
		return size
	}
	g.sizes[node] = 0
	size := int64(len(node.Value)) + 1
	if node.Kind == yaml.AliasNode {
		size = g.of(node.Alias)
	}
	for _, child := range node.Content {
		if size += g.of(child); size > g.most {
			break
		}
	}
	g.sizes[node] = size
	return size
}
