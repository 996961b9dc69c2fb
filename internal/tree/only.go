package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Only is the tree with nothing but what the paths lead to; see Select. The error is fs.ErrNotExist where a path leads nowhere.
// It copies no more than the folders on the way.
func (t *Tree) Only(paths []string) (*Tree, error) {
	for _, given := range paths {
		name := cmp.Or(path.Clean("/" + given)[1:], Root)
		if _, err := t.find("find", name); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%.255q does not exist in the repository: %w", given, fs.ErrNotExist)
		} else if err != nil {
			return nil, err
		}
	}
	root, err := t.Root.only(Select(paths))
	return &Tree{Root: root, Time: t.Time}, err
}

// only copies a folder with what is selected of it.
func (n *Node) only(selected *Selection) (*Node, error) {
	if selected.Whole() {
		return n, nil
	}
	children, err := n.List()
	if err != nil {
		return nil, err
	}
	var kept []*Node
	for _, child := range children {
		inside := selected.In(child.Name)
		if inside == nil {
			continue
		}
		if child, err = child.only(inside); err != nil {
			return nil, err
		}
		kept = append(kept, child)
	}
	return n.with(kept), nil
}

// Keep is the tree with those entries of its root alone that are to be kept.
func (t *Tree) Keep(keep func(name string, isDir bool) bool) (*Tree, error) {
	children, err := t.Root.List()
	if err != nil {
		return nil, err
	}
	var kept []*Node
	for _, child := range children {
		if keep(child.Name, child.Mode.IsDir()) {
			kept = append(kept, child)
		}
	}
	return &Tree{Root: t.Root.with(kept), Time: t.Time}, nil
}
