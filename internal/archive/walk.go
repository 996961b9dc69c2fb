package archive

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// lookFactor is how many entries a walk may look at for each one that an archive may hold.
const lookFactor = 10

// walk lists the folders of a tree in the archive's order, and gives up on a tree beyond its limits.
type walk struct {
	tree   fs.FS
	limits Limits
	seen   int
}

// list returns the entries of a folder in lexical order of their names, whatever order the tree gives them in.
func (w *walk) list(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(w.tree, dir)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", dir, err)
	}
	w.seen += len(entries)
	if w.seen/lookFactor > w.limits.MaxFiles {
		return nil, fmt.Errorf("%w: the tree holds more than %d times %d entries", ErrLimit, lookFactor, w.limits.MaxFiles)
	}
	if !slices.IsSortedFunc(entries, byName) {
		// The slice may be the tree's own; other readers of it are not to see it move.
		entries = slices.SortedFunc(slices.Values(entries), byName)
	}
	for i, entry := range entries {
		if name := entry.Name(); !isName(name) {
			return nil, fmt.Errorf("%w: %q in folder %q is no file name", ErrUnsafe, name, dir)
		}
		if i > 0 && entry.Name() == entries[i-1].Name() {
			return nil, fmt.Errorf("%w: folder %q holds %q twice", ErrUnsafe, dir, entry.Name())
		}
	}
	return entries, nil
}

// join returns the path of an entry of a folder, unless it is beyond the limits.
func (w *walk) join(dir, name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: name %.64q… is longer than %d bytes", ErrLimit, name, maxName)
	}
	name = join(dir, name)
	return name, w.limits.checkPath(name)
}

func (l Limits) checkPath(name string) error {
	if len(name) > l.MaxPath {
		return fmt.Errorf("%w: path %.64q… is longer than %d bytes", ErrLimit, name, l.MaxPath)
	}
	if strings.Count(name, "/") >= l.MaxDepth {
		return fmt.Errorf("%w: path %.64q… is deeper than %d", ErrLimit, name, l.MaxDepth)
	}
	return nil
}

func byName(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }

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
