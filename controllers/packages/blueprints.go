package packages

import (
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

const (
	// maxPoints is the number of packages, blueprints and packages made of them, of which the injection points and slots are cached. Those of
	// a package that take more than maxPointBytes are not cached.
	maxPoints     = 2048
	maxPointBytes = 32 << 10
	// maxBlueprints and maxBlueprintBytes bound the blueprints that are remembered, and how large one of them is: many
	// variants are made of the same one.
	maxBlueprints     = 16
	maxBlueprintBytes = 1 << 20
	// fileBytes is the memory of a file beside its name and content.
	fileBytes = 128
)

// blueprints remembers upstream packages. What is remembered belongs to the Repository that it was read with.
type blueprints struct {
	packages *lru.Cache[string, kpt.Package]
	marks    *lru.Cache[string, variant.Marks]
}

func newBlueprints() *blueprints {
	packages, _ := lru.New[string, kpt.Package](maxBlueprints) // It fails for a size below one alone.
	marks, _ := lru.New[string, variant.Marks](maxPoints)
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
	for name, file := range read {
		size += len(name) + len(file.Content) + fileBytes
	}
	if size <= maxBlueprintBytes {
		c.packages.Add(key, read)
	}
	return read, nil
}

// marks are the points of injection and the slots of the package that the brief is about, and those that people added to what is
// made of it.
func (s Shared) marks(ctx context.Context, b *brief) (variant.Marks, error) {
	c := s.blueprints
	upstream, err := c.marked(b.up, b.blueprint.Tree, func() (kpt.Package, error) { return c.read(ctx, b) })
	if isUnreadable(err) {
		return variant.Marks{}, explain(fmt.Errorf("upstream package %s: %w", b.upstream, err))
	}
	if err != nil {
		return variant.Marks{}, err
	}
	local := s.local(ctx, b)
	if local == nil || local.Tree == "" {
		return variant.Distinct(upstream), nil
	}
	added, err := c.marked(b.down, local.Tree, func() (kpt.Package, error) { return b.down.Read(ctx, local.Commit, b.downstream) })
	if err != nil && !isUnreadable(err) { // What cannot be read has no points, and whoever merges it says what is wrong.
		return variant.Marks{}, fmt.Errorf("read the package %s: %w", b.downstream, err)
	}
	return variant.Distinct(upstream, added), nil
}

// marked are the points of injection and the slots in a tree of the repository.
func (c *blueprints) marked(in *mirror, tree string, read func() (kpt.Package, error)) (variant.Marks, error) {
	key := in.key.String() + " " + tree
	if known, ok := c.marks.Get(key); ok {
		return known, nil
	}
	p, err := read()
	if err != nil {
		return variant.Marks{}, err
	}
	found, err := variant.MarksOf(p)
	if err == nil && found.Bytes() <= maxPointBytes {
		c.marks.Add(key, found)
	}
	return found, err
}

// isUnreadable tells whether it is the package that is wrong, and not the way to it.
func isUnreadable(err error) bool {
	_, syntax := errors.AsType[*kpt.SyntaxError](err)
	return syntax || errors.Is(err, kpt.ErrTooLarge) || errors.Is(err, kpt.ErrSubmodule)
}

// local is what there is of the variant's package: its open change, or what is on the branch; nil for nothing.
func (s Shared) local(ctx context.Context, b *brief) *pkgrepo.Revision {
	p := b.down.Snapshot().Package(b.downstream)
	open, err := s.claim(ctx, b, p)
	switch {
	case err != nil:
		return nil
	case open != nil:
		return open
	}
	return branchOf(p)
}
