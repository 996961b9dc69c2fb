package packages

import (
	"context"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/variant"
)

const (
	// maxPoints is of how many blueprints the points of injection are remembered.
	maxPoints = 256
	// maxBlueprints and maxBlueprintBytes bound the blueprints that are remembered, and how large one of them is: many
	// variants are made of the same one.
	maxBlueprints     = 16
	maxBlueprintBytes = 1 << 20
)

// blueprints remembers upstream packages. What is remembered belongs to the Repository that it was read with.
type blueprints struct {
	packages *lru.Cache[string, kpt.Package]
	marks    *lru.Cache[string, []kpt.Point]
}

func newBlueprints() *blueprints {
	packages, _ := lru.New[string, kpt.Package](maxBlueprints) // It fails for a size below one alone.
	marks, _ := lru.New[string, []kpt.Point](maxPoints)
	return &blueprints{packages: packages, marks: marks}
}

// read reads the package that the brief is about.
func (c *blueprints) read(ctx context.Context, b *brief) (kpt.Package, error) {
	key := b.up.key.String() + " " + b.blueprint.Tree
	if known, ok := c.packages.Get(key); ok {
		return known, nil
	}
	read, err := b.up.Read(ctx, b.blueprint.Commit, b.upstream)
	if err != nil {
		return nil, fmt.Errorf("read the upstream package %s: %w", b.upstream, err)
	}
	size := 0
	for _, file := range read {
		size += len(file.Content)
	}
	if size <= maxBlueprintBytes {
		c.packages.Add(key, read)
	}
	return read, nil
}

// points are the points of injection of the package that the brief is about.
func (c *blueprints) points(ctx context.Context, b *brief) ([]kpt.Point, error) {
	key := b.up.key.String() + " " + b.blueprint.Tree
	if known, ok := c.marks.Get(key); ok {
		return known, nil
	}
	read, err := c.read(ctx, b)
	if err != nil {
		return nil, err
	}
	found, err := variant.Points(read)
	if err != nil {
		return nil, explain(fmt.Errorf("upstream package %s: %w", b.upstream, err))
	}
	c.marks.Add(key, found)
	return found, nil
}
