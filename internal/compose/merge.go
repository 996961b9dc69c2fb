package compose

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

const (
	// maxYAML bounds a file that is merged, in bytes.
	maxYAML = 4 << 20
	// yamlCost is what a byte of YAML takes in memory while it is merged.
	yamlCost = 20
)

// mergeYAML is a YAML file with another one merged into it, as Helm merges values: maps deeply, all else replaced. Of a file with
// several documents the later ones are merged into the first.
func mergeYAML(ctx context.Context, below, over *tree.Node) (*tree.Node, error) {
	cost := yamlCost * (below.Size + over.Size)
	if err := memory.Draw(ctx, cost); err != nil {
		return nil, err
	}
	defer memory.Return(ctx, cost)
	base, err := readYAML(below)
	if err != nil {
		return nil, err
	}
	overlay, err := readYAML(over)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(loader.MergeMaps(base, overlay))
	if err != nil {
		return nil, fmt.Errorf("merge '%s': %w", below.Name, err)
	}
	namer := tree.NewNamer()
	_, _ = namer.Write(text) // A hash takes everything.
	return &tree.Node{Name: below.Name, Mode: 0o644, Size: int64(len(text)), ID: namer.ID(), Source: made(text)}, memory.Draw(ctx, int64(len(text)))
}

func readYAML(n *tree.Node) (map[string]any, error) {
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
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("'%s' is no YAML that can be merged: %w", n.Name, err)
		}
		all = loader.MergeMaps(all, document)
	}
}

// made is a file that was made here.
type made []byte

// Open implements tree.Source.
func (m made) Open(*tree.Node) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m)), nil }
