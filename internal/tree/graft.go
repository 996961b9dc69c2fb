package tree

import (
	"io/fs"
	"slices"
	"strings"
)

// Graft copies a folder with the source at a path beneath it, in the place of what is there, and shares all else with the
// folder. Folders on the way are made up; the source gets the name that the path ends in.
func Graft(into *Node, at string, source *Node) *Node {
	grown := *into
	grown.Children = slices.Clone(into.Children)
	name, rest, deeper := strings.Cut(at, "/")
	place, found := into.Find(name)
	if !found {
		grown.Children = slices.Insert(grown.Children, place, &Node{Name: name, Mode: fs.ModeDir | 0o755})
	}
	next := *source
	if deeper {
		next = *Graft(grown.Children[place], rest, source)
	}
	next.Name = name
	grown.Children[place] = &next
	return &grown
}
