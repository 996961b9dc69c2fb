// Package compose makes one tree out of parts of others, as Flux's ArtifactGenerator copies them: with the manners of cp, by the
// same globs, and in the order of the operations.
// It does not know where the trees come from or what becomes of the one that is made.
package compose

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

// ErrCopy says that an operation cannot be done with what the sources have.
var ErrCopy = errors.New("failed to apply copy operation")

// How files are copied.
const (
	// Overwrite replaces a file that is there. It is meant when nothing is said.
	Overwrite = "Overwrite"
	// Merge merges a YAML file into one that is there.
	Merge = "Merge"
	// Extract unpacks a tar.gz.
	Extract = "Extract"
)

// Operation copies something.
type Operation struct {
	// From is @<alias>/<path or glob> in the source of that alias, To is @artifact/<path>. A path that ends in a slash is a folder.
	From, To string
	// Exclude are globs of what is left out: by the path from the source's root or from the glob's first wildcard on or, without
	// a slash, by the name.
	Exclude []string
	// Strategy is one of the above.
	Strategy string
}

// Composer makes trees of the same sources. It is for one goroutine.
type Composer struct {
	// Sources are found by their aliases.
	Sources map[string]*tree.Tree
	// Limits bound what archives in the sources hold together, and the work of matching names.
	Limits archive.Limits
	// TempDir has the bodies of such archives; the system's folder for these if empty.
	TempDir string

	unpacked map[string]*archive.Tree // by the ID of the archive
	matched  int64                    // bytes compared so far
}

// Compose does the operations one after the other, beginning with nothing. Everything in the result has an ID. It is of use for
// as long as the sources are, and until Close. The error is ErrCopy with the operation's own words, or one of package archive.
func (c *Composer) Compose(ctx context.Context, operations []Operation) (*tree.Tree, error) {
	root := folder(tree.Root)
	for _, o := range operations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next, err := c.apply(ctx, root, o)
		if err != nil {
			return nil, fmt.Errorf("%w from '%s' to '%s': %w", ErrCopy, o.From, o.To, err)
		}
		root = next
	}
	root, err := root.Named()
	return &tree.Tree{Root: root}, err
}

// Close gives up what was unpacked for the trees.
func (c *Composer) Close() error {
	var errs []error
	for _, t := range c.unpacked {
		errs = append(errs, t.Close())
	}
	c.unpacked = nil
	return errors.Join(errs...)
}

// apply returns the folder with what an operation adds to it.
func (c *Composer) apply(ctx context.Context, root *tree.Node, o Operation) (*tree.Node, error) {
	alias, pattern, ok := strings.Cut(strings.TrimPrefix(o.From, "@"), "/")
	if !ok {
		return nil, errors.New("the source is not '@alias/path'")
	}
	source, ok := c.Sources[alias]
	if !ok {
		return nil, fmt.Errorf("source alias '%s' not found", alias)
	}
	to, err := destination(o.To)
	if err != nil {
		return nil, err
	}
	exclude, err := c.excludes(pattern, o.Exclude)
	if err != nil {
		return nil, err
	}
	copying := copying{composer: c, root: root, source: source, strategy: o.Strategy, exclude: exclude}
	if isGlob(pattern) {
		err = copying.matches(ctx, alias, pattern, to)
	} else {
		err = copying.single(ctx, path.Clean(pattern), to, strings.HasSuffix(o.To, "/"))
	}
	return copying.root, err
}

// destination is a path from the root of what is made.
func destination(to string) (string, error) {
	place, ok := strings.CutPrefix(to, "@artifact/")
	switch {
	case !ok:
		return "", errors.New("the destination is not '@artifact/path'")
	case strings.HasPrefix(place, "/"), strings.ContainsRune(place, 0):
		return "", errors.New("the destination is no path in the artifact")
	}
	for part := range strings.SplitSeq(place, "/") {
		if part == ".." {
			return "", errors.New("the destination leads out of the artifact")
		}
	}
	return path.Clean(place), nil
}

// copying is one operation under way.
type copying struct {
	composer *Composer
	root     *tree.Node
	source   *tree.Tree
	strategy string
	exclude  excludes
}

// single copies what a path leads to: a folder under its own name, a file into a folder or as the file of the name.
func (c *copying) single(ctx context.Context, from, to string, intoFolder bool) error {
	node, err := find(c.source.Root, from)
	if err != nil {
		return err
	}
	if node == nil {
		return fmt.Errorf("source '%s' does not exist", from)
	}
	if node.Mode.IsDir() {
		if c.strategy == Extract {
			return fmt.Errorf("'%s' is a folder, and archives alone can be extracted", from)
		}
		c.exclude.base = from
		return c.put(ctx, node, from, path.Join(to, path.Base(from)))
	}
	c.exclude.base = tree.Root
	switch excluded, err := c.exclude.has(from); {
	case err != nil || excluded:
		return err
	case c.strategy == Extract && !isArchive(from):
		return fmt.Errorf("'%s' is no archive: its name ends neither in .tar.gz nor in .tgz", from)
	case c.strategy == Extract:
		return c.extract(ctx, node, to)
	}
	there, err := find(c.root, to)
	if err != nil {
		return err
	}
	if intoFolder || there != nil && there.Mode.IsDir() {
		to = path.Join(to, path.Base(from))
	}
	return c.put(ctx, node, from, to)
}

// matches copies what a glob matches.
func (c *copying) matches(ctx context.Context, alias, pattern, to string) error {
	found, err := c.glob(ctx, pattern)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no files match pattern '%s' in source '%s'", pattern, alias)
	}
	kept := 0
	for _, match := range found {
		excluded, err := c.exclude.has(match)
		if err != nil {
			return err
		}
		if match == tree.Root || excluded {
			continue
		}
		kept++
		if err := c.match(ctx, pattern, match, to); err != nil {
			return err
		}
	}
	if kept == 0 {
		return fmt.Errorf("all files matching pattern '%s' in source '%s' were excluded", pattern, alias)
	}
	return nil
}

// match copies one thing that a glob matches.
func (c *copying) match(ctx context.Context, pattern, match, to string) error {
	node, err := find(c.source.Root, match)
	if err != nil || node == nil {
		return err
	}
	if c.strategy != Extract {
		return c.put(ctx, node, match, path.Join(to, landing(pattern, match)))
	}
	if node.Mode.IsDir() || !isArchive(match) {
		return nil
	}
	return c.extract(ctx, node, to)
}

// landing is where below the destination a match goes: of <folder>/** its path in the folder, else its whole path.
func landing(pattern, match string) string {
	if above, ok := strings.CutSuffix(pattern, "/**"); ok {
		if inside, ok := strings.CutPrefix(match, above+"/"); ok {
			return inside
		}
	}
	return match
}

// put lays a copy of what the source has at a path onto what is there.
func (c *copying) put(ctx context.Context, node *tree.Node, from, to string) error {
	node, err := c.exclude.without(ctx, node, from)
	if err != nil {
		return err
	}
	c.root, err = place(ctx, c.root, to, node, c.strategy == Merge)
	return err
}

// extract lays what an archive holds onto a folder.
func (c *copying) extract(ctx context.Context, node *tree.Node, to string) error {
	content, err := c.composer.unpack(ctx, node)
	if err != nil {
		return fmt.Errorf("failed to extract '%s': %w", node.Name, err)
	}
	c.root, err = place(ctx, c.root, to, content.Root, false)
	return err
}

// unpack opens an archive in a source, once.
func (c *Composer) unpack(ctx context.Context, node *tree.Node) (*archive.Tree, error) {
	named, err := node.Named()
	if err != nil {
		return nil, err
	}
	if known, ok := c.unpacked[named.ID]; ok {
		return known, nil
	}
	limits := c.Limits
	for _, other := range c.unpacked {
		if limits, err = limits.Beside(other); err != nil {
			return nil, err
		}
	}
	body, err := node.Source.Open(node)
	if err != nil {
		return nil, err
	}
	opened, err := archive.OpenNamed(ctx, body, c.TempDir, limits, nil)
	_ = body.Close() // It was only read.
	if err != nil {
		return nil, err
	}
	if c.unpacked == nil {
		c.unpacked = map[string]*archive.Tree{}
	}
	c.unpacked[named.ID] = opened
	return opened, nil
}

// isArchive goes by the name, in whatever case.
func isArchive(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// nodeCost is what a file or folder takes in memory that is not shared with a source.
const nodeCost = 256

func draw(ctx context.Context, nodes int) error { return memory.Draw(ctx, nodeCost*int64(nodes)) }
