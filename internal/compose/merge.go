package compose

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	goyaml "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

const (
	// maxYAML bounds a file that is merged, in bytes, and maxValues the values in it, once for each place where an alias stands.
	maxYAML, maxValues = 1 << 20, 500_000
	// yamlCost is what a byte of YAML takes in memory while it is looked at, and valueCost what a value does while it is merged.
	yamlCost, valueCost = 150, 128
)

// mergeYAML is a YAML file with another one merged into it, as Helm merges values: maps deeply, all else replaced. Of a file with
// several documents the later ones are merged into the first.
func mergeYAML(ctx context.Context, below, over *tree.Node) (*tree.Node, error) {
	var text []byte
	err := memory.Part(ctx, func(ctx context.Context) error {
		base, err := readYAML(ctx, below)
		if err != nil {
			return err
		}
		overlay, err := readYAML(ctx, over)
		if err != nil {
			return err
		}
		if text, err = yaml.Marshal(merge(base, overlay)); err != nil {
			return fmt.Errorf("merge '%s': %w", below.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	namer := tree.NewNamer()
	_, _ = namer.Write(text) // A hash takes everything.
	return &tree.Node{Name: below.Name, Mode: 0o644, Size: int64(len(text)), ID: namer.ID(), Source: made(text)}, memory.Draw(ctx, int64(len(text)))
}

// readYAML reads all documents of a file as one.
func readYAML(ctx context.Context, n *tree.Node) (map[string]any, error) {
	if n.Size > maxYAML {
		return nil, fmt.Errorf("%w: '%s' has %d bytes, and a YAML file that is merged may have %d", archive.ErrLimit, n.Name, n.Size, maxYAML)
	}
	if err := memory.Draw(ctx, yamlCost*n.Size); err != nil {
		return nil, err
	}
	content, err := n.Source.Open(n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // It was only read.
	all, documents := map[string]any{}, utilyaml.NewYAMLReader(bufio.NewReader(content))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read '%s': %w", n.Name, err)
		}
		if err := weigh(ctx, text); err != nil {
			return nil, fmt.Errorf("'%s': %w", n.Name, err)
		}
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("'%s' is no YAML that can be merged: %w", n.Name, err)
		}
		all = merge(all, document)
	}
}

// merge lays a map over another one, which it changes, by Helm's rules. It takes no longer than the map has values: a file may have
// as many documents as it has lines.
func merge(below, over map[string]any) map[string]any {
	for key, value := range over {
		inside, isMap := value.(map[string]any)
		if there, both := below[key].(map[string]any); isMap && both {
			value = merge(there, inside)
		}
		below[key] = value
	}
	return below
}

// weigh draws what the values of a document take, if it may have so many. What is no YAML is for others to say.
func weigh(ctx context.Context, text []byte) error {
	var root goyaml.Node
	if err := goyaml.Unmarshal(text, &root); err != nil {
		return nil //nolint:nilerr // Whoever reads it next says so.
	}
	values := countValues(&root, map[*goyaml.Node]int{})
	if values > maxValues {
		return fmt.Errorf("%w: a YAML document that is merged may have %d values, also by its aliases", archive.ErrLimit, maxValues)
	}
	return memory.Draw(ctx, valueCost*int64(values))
}

// countValues counts what a node stands for, up to one more than there may be. What an alias stands for is counted once, and added
// wherever it stands.
func countValues(n *goyaml.Node, known map[*goyaml.Node]int) int {
	if n.Kind == goyaml.AliasNode {
		n = n.Alias
	}
	if count, ok := known[n]; ok {
		return count
	}
	known[n] = maxValues + 1 // Within itself it has no end.
	all := 1
	for _, inside := range n.Content {
		all = min(all+countValues(inside, known), maxValues+1)
	}
	known[n] = all
	return all
}

// made is a file that was made here.
type made []byte

// Open implements tree.Source.
func (m made) Open(*tree.Node) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m)), nil }
