package tree

import (
	"io/fs"
	"slices"
	"strings"
)

// Graft copies a folder with the source at a path beneath it, in the place of what is there, and shares all else with the
// folder. Folders on the way are made up; the source gets the name that the path ends in.
func Graft(into *Node, at string, source *Node) (*Node, error) {
	children, err := into.List()
	if err != nil {
		return nil, err
	}
	children = slices.Clone(children)
	name, rest, deeper := strings.Cut(at, "/")
	place, found := search(children, name)
	if !found {
		children = slices.Insert(children, place, &Node{Name: name, Mode: fs.ModeDir | 0o755})
	}
	next := source
	if deeper {
		if next, err = Graft(children[place], rest, source); err != nil {
			return nil, err
		}
	}
	named := *next
	named.Name = name
	children[place] = &named
	return into.with(children), nil
}

// with copies a folder, with other children.
func (n *Node) with(children []*Node) *Node {
	return &Node{Name: n.Name, Mode: n.Mode, Children: children}
}
