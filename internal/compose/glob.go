package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

// maxAlternatives bounds how many patterns one with braces stands for.
const maxAlternatives = 1024

// matchCost is what a name that may match takes in memory beside its text.
const matchCost = 64

// isGlob tells whether a path has a wildcard.
func isGlob(pattern string) bool { return strings.ContainsAny(pattern, "*?[]") }

// glob lists what a pattern matches, in the order of the names' bytes. As in Flux, ** is * but for archives to extract.
func (c *copying) glob(ctx context.Context, pattern string) (found []string, err error) {
	alternatives, err := count(pattern)
	if err != nil {
		return nil, err
	}
	names := &walked{Tree: c.source, ctx: ctx, composer: c.composer, weight: int64(alternatives) * int64(len(pattern)+1)}
	if c.strategy == Extract {
		found, err = doublestar.Glob(names, pattern)
	} else {
		found, err = fs.Glob(names, pattern)
	}
	if err != nil {
		err = fmt.Errorf("invalid glob pattern '%s': %w", pattern, err)
	}
	return found, errors.Join(names.halted, err)
}

// walked is a source that a glob goes through. What it lists is paid for whenever it is compared with a pattern: one with several
// ** finds the same names again and again.
type walked struct {
	*tree.Tree

	ctx      context.Context //nolint:containedctx // The interface has no room for it.
	composer *Composer
	// weight is what a comparison with the pattern costs for each byte of a name.
	weight int64
	halted error // why the walk is over; those who walk pass over errors
}

// Stat costs what it takes to go down to the name.
func (w *walked) Stat(name string) (fs.FileInfo, error) {
	if err := w.pay(int64(len(name)), 0); err != nil {
		return nil, err
	}
	return w.Tree.Stat(name)
}

// ReadDir costs what it takes to compare all names in the folder, and the memory of the paths that may match.
func (w *walked) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := w.Tree.ReadDir(name)
	size := int64(len(name) + 1)
	for _, e := range entries {
		size += int64(len(e.Name()) + 1)
	}
	if unpaid := w.pay(w.weight*size, size+(matchCost+int64(len(name)))*int64(len(entries))); unpaid != nil {
		return nil, unpaid
	}
	return entries, err
}

func (w *walked) pay(work, bytes int64) error {
	if w.halted == nil {
		w.halted = cmp.Or(w.ctx.Err(), w.composer.spend(work), memory.Draw(w.ctx, bytes))
	}
	return w.halted
}

// count tells how many patterns one with braces stands for.
func count(pattern string) (int, error) {
	all, here, depth := 1, 1, 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++ // The next one stands for itself.
		case '{':
			depth++
		case ',':
			if depth > 0 {
				here++
			}
		case '}':
			if depth > 0 {
				depth--
			}
			all, here = all*here, 1
		}
		if all*here > maxAlternatives {
			return 0, fmt.Errorf("pattern '%s' has more than %d alternatives", pattern, maxAlternatives)
		}
	}
	return all * here, nil
}

// spend takes from the work that matching names may be.
func (c *Composer) spend(work int64) error {
	most := c.Limits.MaxMatch
	if most <= 0 {
		most = archive.DefaultMaxMatch
	}
	if c.matched += work; c.matched > most {
		return fmt.Errorf("%w: matching the globs with the names in the sources compares more than %d bytes", archive.ErrLimit, most)
	}
	return nil
}

// excludes are globs of what an operation leaves out.
type excludes struct {
	composer *Composer
	globs    []string
	// weight is what a comparison with all of them costs for each byte of a name.
	weight int64
	// base is the folder that paths may be seen from as well.
	base string
}

func (c *Composer) excludes(pattern string, globs []string) (excludes, error) {
	e := excludes{composer: c, globs: globs, base: selected(pattern)}
	for _, glob := range globs {
		alternatives, err := count(glob)
		if err == nil && !doublestar.ValidatePattern(glob) {
			err = doublestar.ErrBadPattern
		}
		if err != nil {
			return e, fmt.Errorf("invalid exclude pattern '%s': %w", glob, err)
		}
		e.weight += int64(alternatives) * int64(len(glob)+1)
	}
	return e, nil
}

// selected is the folder above the first wildcard.
func selected(pattern string) string {
	var above []string
	for part := range strings.SplitSeq(path.Clean(pattern), "/") {
		if isGlob(part) {
			break
		}
		above = append(above, part)
	}
	return path.Join(append([]string{tree.Root}, above...)...)
}

// has tells whether what is at a path of the source is left out.
func (e excludes) has(name string) (bool, error) {
	if len(e.globs) == 0 {
		return false, nil
	}
	if err := e.composer.spend(e.weight * int64(len(name))); err != nil {
		return false, err
	}
	inside, isInside := strings.CutPrefix(name, e.base+"/")
	for _, glob := range e.globs {
		for _, seen := range []string{name, inside} {
			if (isInside || seen == name) && doublestar.MatchUnvalidated(glob, seen) {
				return true, nil
			}
		}
		if !strings.Contains(glob, "/") && doublestar.MatchUnvalidated(glob, path.Base(name)) {
			return true, nil
		}
	}
	return false, nil
}

// without is what the source has at a path, less what is left out in it. Where that is nothing, it is shared.
func (e excludes) without(ctx context.Context, node *tree.Node, from string) (*tree.Node, error) {
	if len(e.globs) == 0 || !node.Mode.IsDir() {
		return node, nil
	}
	children, err := node.List()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(ctx.Err(), draw(ctx, len(children))); err != nil {
		return nil, err
	}
	kept, same := make([]*tree.Node, 0, len(children)), true
	for _, child := range children {
		name := path.Join(from, child.Name)
		excluded, err := e.has(name)
		if err != nil {
			return nil, err
		}
		if excluded {
			same = false
			continue
		}
		left, err := e.without(ctx, child, name)
		if err != nil {
			return nil, err
		}
		same = same && left == child
		kept = append(kept, left)
	}
	if same {
		return node, nil
	}
	return &tree.Node{Name: node.Name, Mode: node.Mode, Children: kept}, nil
}
