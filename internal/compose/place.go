package compose

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sluice.dev/sluice/internal/tree"
)

func folder(name string) *tree.Node { return &tree.Node{Name: name, Mode: fs.ModeDir | 0o755} }

// find is what a clean path leads to; nil where there is nothing.
func find(n *tree.Node, name string) (*tree.Node, error) {
	if name == tree.Root {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if n == nil || !n.Mode.IsDir() {
			return nil, nil
		}
		var err error
		if n, err = n.Find(part); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// place returns a folder with something laid onto what is at a clean path in it. Folders on the way are made up.
func place(ctx context.Context, below *tree.Node, at string, over *tree.Node, merging bool) (*tree.Node, error) {
	if at == tree.Root {
		return lay(ctx, below, over, merging)
	}
	for above := path.Dir(at); above != tree.Root; above = path.Dir(above) {
		if n, err := find(below, above); err != nil {
			return nil, err
		} else if n != nil && !n.Mode.IsDir() {
			return nil, fmt.Errorf("'%s' is a file, and no folder", path.Base(above))
		}
	}
	there, err := find(below, at)
	if err == nil && there != nil {
		over, err = lay(ctx, there, over, merging)
	}
	if err == nil {
		err = draw(ctx, strings.Count(at, "/")+1)
	}
	if err != nil {
		return nil, err
	}
	return tree.Graft(below, at, over)
}

// lay returns what is there with something over it: folders become one, and a file takes the place of a file, or is merged into it.
func lay(ctx context.Context, below, over *tree.Node, merging bool) (*tree.Node, error) {
	switch {
	case below.Mode.IsDir() && !over.Mode.IsDir():
		return nil, fmt.Errorf("'%s' is a folder, and a file is to take its place", below.Name)
	case !below.Mode.IsDir() && over.Mode.IsDir():
		return nil, fmt.Errorf("'%s' is a file, and a folder is to take its place", below.Name)
	case !below.Mode.IsDir() && merging:
		return mergeYAML(ctx, below, over)
	case !below.Mode.IsDir():
		return over, nil
	}
	ours, err := below.List()
	if err != nil {
		return nil, err
	}
	theirs, err := over.List()
	if err != nil {
		return nil, err
	}
	if err := draw(ctx, len(ours)+len(theirs)); err != nil {
		return nil, err
	}
	var all []*tree.Node
	for len(ours) > 0 || len(theirs) > 0 {
		switch {
		case len(theirs) == 0 || len(ours) > 0 && ours[0].Name < theirs[0].Name:
			all, ours = append(all, ours[0]), ours[1:]
		case len(ours) == 0 || theirs[0].Name < ours[0].Name:
			all, theirs = append(all, theirs[0]), theirs[1:]
		default:
			both, err := lay(ctx, ours[0], theirs[0], merging)
			if err != nil {
				return nil, err
			}
			all, ours, theirs = append(all, both), ours[1:], theirs[1:]
		}
	}
	return &tree.Node{Name: below.Name, Mode: below.Mode, Children: all}, nil
}
