package compose

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/internal/yamlweight"
)

// maxYAML bounds a file that is merged, in bytes.
const maxYAML = 1 << 20

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
		if err := yamlweight.Draw(ctx, text); err != nil {
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

// made is a file that was made here.
type made []byte

// Open implements tree.Source.
func (m made) Open(*tree.Node) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m)), nil }
