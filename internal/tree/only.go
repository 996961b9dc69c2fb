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

// Without is the tree without the folders that hold the given files, and without those that are empty then.
func (t *Tree) Without(files []string) (*Tree, error) {
	if len(files) == 0 {
		return t, nil
	}
	root, err := t.Root.without(Select(files))
	return &Tree{Root: root, Time: t.Time}, err
}

// without is the folder itself if it has none of these folders. It is empty if it holds one of the files.
func (n *Node) without(marks *Selection) (*Node, error) {
	children, err := n.List()
	if err != nil {
		return nil, err
	}
	var kept []*Node
	isSame := true
	for _, child := range children {
		inside, left := marks.In(child.Name), child
		switch {
		case child.Mode.IsRegular() && inside.Whole():
			return n.with(nil), nil
		case inside != nil && !inside.Whole() && child.Mode.IsDir():
			if left, err = child.without(inside); err != nil {
				return nil, err
			}
		}
		if isSame = isSame && left == child; left == child || len(left.Children) > 0 {
			kept = append(kept, left)
		}
	}
	if isSame {
		return n, nil
	}
	return n.with(kept), nil
}
