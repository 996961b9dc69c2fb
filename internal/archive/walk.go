package archive

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/tree"
)

// lookFactor is how many entries a walk may look at for each one that an archive may hold.
const lookFactor = 10

// walk lists the folders of a tree in the archive's order, and gives up on a tree beyond its limits.
type walk struct {
	limits Limits
	seen   int
}

// list returns the entries of a folder in lexical order of their names.
func (w *walk) list(ctx context.Context, dir string, n *tree.Node) ([]*tree.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := n.List()
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", dir, err)
	}
	if err := w.look(len(entries)); err != nil {
		return nil, err
	}
	for i, entry := range entries {
		if !isName(entry.Name) {
			return nil, fmt.Errorf("%w: %q in folder %q is no file name", ErrUnsafe, entry.Name, dir)
		}
		if i > 0 && entry.Name <= entries[i-1].Name {
			return nil, fmt.Errorf("%w: folder %q holds %q twice", ErrUnsafe, dir, entry.Name)
		}
	}
	return entries, nil
}

func (w *walk) look(entries int) error {
	if w.seen += entries; w.seen/lookFactor > w.limits.MaxFiles {
		return fmt.Errorf("%w: the tree holds more than %d times %d entries", ErrLimit, lookFactor, w.limits.MaxFiles)
	}
	return nil
}

// join returns the path of an entry of a folder, unless it is beyond the limits.
func (w *walk) join(dir, name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: name %.64q… is longer than %d bytes", ErrLimit, name, maxName)
	}
	name = join(dir, name)
	return name, w.limits.CheckPath(name)
}

// CheckPath says whether a path is longer or deeper than the limits, all of which are set. The error is ErrLimit.
func (l Limits) CheckPath(name string) error {
	if len(name) > l.MaxPath {
		return fmt.Errorf("%w: path %.64q… is longer than %d bytes", ErrLimit, name, l.MaxPath)
	}
	if strings.Count(name, "/") >= l.MaxDepth {
		return fmt.Errorf("%w: path %.64q… is deeper than %d", ErrLimit, name, l.MaxDepth)
	}
	return nil
}

// isName tells whether a name can stand in a folder. Trees are built from bytes that others chose.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

func join(dir, name string) string {
	if dir == root {
		return name
	}
	return dir + "/" + name
}

// plant gives the root of a tree, and makes nodes of any other file system, which it lists as a whole.
func plant(ctx context.Context, files fs.FS, limits Limits) (*tree.Node, error) {
	if planted, ok := files.(interface{ Top() *tree.Node }); ok {
		return planted.Top(), nil
	}
	top := newFolder(root)
	return top, (&planter{walk{limits: limits}, files}).fill(ctx, root, top)
}

type planter struct {
	walk
	files fs.FS
}

func (p *planter) fill(ctx context.Context, dir string, n *tree.Node) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(p.files, dir)
	if err != nil {
		return fmt.Errorf("list %q: %w", dir, err)
	}
	if err := p.look(len(entries)); err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("stat %q: %w", join(dir, entry.Name()), err)
		}
		child := &tree.Node{Name: entry.Name(), Mode: info.Mode(), Size: info.Size(), Source: elsewhere{p.files, join(dir, entry.Name())}}
		if entry.IsDir() && isName(child.Name) {
			if err := p.fill(ctx, join(dir, child.Name), child); err != nil {
				return err
			}
		}
		n.Children = append(n.Children, child)
	}
	slices.SortFunc(n.Children, tree.Compare)
	facts, err := tree.Sum(n.Children)
	n.Known = &facts
	return err
}

// elsewhere is a file of another file system.
type elsewhere struct {
	files fs.FS
	name  string
}

// Open implements tree.Source.
func (e elsewhere) Open(*tree.Node) (io.ReadCloser, error) { return e.files.Open(e.name) }
