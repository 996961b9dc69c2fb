package archive

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sluice.dev/sluice/internal/tree"
)

// Mount shows a part of another tree at a place in a tree.
type Mount struct {
	// Tree is where the part comes from.
	Tree *tree.Tree
	// From is the folder or the single file to show; empty means the whole tree. A ".." leads no further than to
	// the root of the tree.
	From string
	// To is the path to show it at; the folders above are made up as needed. A ".." is confined as well.
	To string
}

// Overlay lays the mounts over base in their order, so that a later one may go inside an earlier one. It copies
// nothing and reads no file; base and the mounted trees stay in use.
//
// The rules are those of a rename, which Flux's source-controller uses for spec.include: the error is ErrMount when
// From names nothing, and when To is the root, a folder that exists, or a path through something that is no folder.
// A file that exists gives way to a file, and is an ErrMount for a folder. Links are nowhere followed.
// A place beyond the limits is an ErrLimit: every folder on the way to it takes memory.
func Overlay(base *tree.Tree, limits Limits, mounts ...Mount) (*tree.Tree, error) {
	laid := *base
	for _, m := range mounts {
		err := limits.orDefault().CheckPath(confine(m.To))
		if err == nil {
			laid.Root, err = m.lay(laid.Root)
		}
		if err != nil {
			return nil, fmt.Errorf("mount %.255q at %.255q: %w", m.From, m.To, err)
		}
	}
	return &laid, nil
}

// confine makes a path relative to the root of a tree without leaving it.
func confine(name string) string {
	if name = path.Clean("/" + name)[1:]; name != "" {
		return name
	}
	return root
}

func (m Mount) lay(below *tree.Node) (*tree.Node, error) {
	from, to := confine(m.From), confine(m.To)
	if to == root || strings.ContainsRune(to, 0) {
		return nil, fmt.Errorf("%w: the place is the root of the tree", ErrMount)
	}
	source, err := lookUp(m.Tree.Root, from)
	if err != nil {
		return nil, err
	}
	if source == nil || !source.Mode.IsDir() && !source.Mode.IsRegular() {
		return nil, fmt.Errorf("%w: %q names no file or folder", ErrMount, from)
	}
	place, err := lookUp(below, to)
	if err != nil {
		return nil, err
	}
	if place != nil && (!place.Mode.IsRegular() || source.Mode.IsDir()) {
		return nil, fmt.Errorf("%w: %q exists already", ErrMount, to)
	}
	return tree.Graft(below, to, source)
}

// lookUp finds what a path leads to, nil where there is nothing. A path through something that is no folder is an
// ErrMount.
func lookUp(n *tree.Node, name string) (*tree.Node, error) {
	if name == root {
		return n, nil
	}
	dir := root
	for part := range strings.SplitSeq(name, "/") {
		if !n.Mode.IsDir() {
			return nil, fmt.Errorf("%w: %q is no folder", ErrMount, dir)
		}
		child, err := n.Find(part)
		if child == nil {
			return nil, err
		}
		n, dir = child, join(dir, part)
	}
	return n, nil
}

func newFolder(name string) *tree.Node { return &tree.Node{Name: name, Mode: fs.ModeDir | folderMode} }
