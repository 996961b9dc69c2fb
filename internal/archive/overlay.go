package archive

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Mount shows a part of another tree at a place in a tree.
type Mount struct {
	// Tree is where the part comes from.
	Tree fs.FS
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
func Overlay(base fs.FS, mounts ...Mount) (fs.FS, error) {
	tree := base
	for _, m := range mounts {
		laid, err := lay(tree, m)
		if err != nil {
			return nil, fmt.Errorf("mount %q at %q: %w", m.From, m.To, err)
		}
		tree = laid
	}
	return tree, nil
}

// confine makes a path relative to the root of a tree without leaving it.
func confine(name string) string {
	if name = path.Clean("/" + name)[1:]; name != "" {
		return name
	}
	return root
}

func lay(below fs.FS, m Mount) (*layer, error) {
	from, to := confine(m.From), confine(m.To)
	if to == root || strings.ContainsRune(to, 0) {
		return nil, fmt.Errorf("%w: the place is the root of the tree", ErrMount)
	}
	source, found, err := lookUp(m.Tree, from)
	if err != nil {
		return nil, err
	}
	if !found || !source.IsDir() && !source.IsRegular() {
		return nil, fmt.Errorf("%w: %q names no file or folder", ErrMount, from)
	}
	place, found, err := lookUp(below, to)
	if err != nil {
		return nil, err
	}
	if found && (!place.IsRegular() || source.IsDir()) {
		return nil, fmt.Errorf("%w: %q exists already", ErrMount, to)
	}
	return &layer{below: below, tree: m.Tree, from: from, to: to, folder: source.IsDir()}, nil
}

// lookUp finds the type of a path by way of listings, since opening it could follow a link. A path through
// something that is no folder is an ErrMount.
func lookUp(tree fs.FS, name string) (fs.FileMode, bool, error) {
	dir, kind := root, fs.ModeDir
	if name == root {
		return kind, true, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !kind.IsDir() {
			return 0, false, fmt.Errorf("%w: %q is no folder", ErrMount, dir)
		}
		entries, err := fs.ReadDir(tree, dir)
		if err != nil {
			return 0, false, fmt.Errorf("list %q: %w", dir, err)
		}
		entry := findEntry(entries, part)
		if entry == nil {
			return 0, false, nil
		}
		dir, kind = join(dir, part), entry.Type()
	}
	return kind, true, nil
}

func findEntry(entries []fs.DirEntry, name string) fs.DirEntry {
	for _, entry := range entries {
		if entry.Name() == name {
			return entry
		}
	}
	return nil
}
