package tree

import (
	"path"
	"strings"
)

// Selection is what is wanted of a folder: the whole of it, or what is below some names. Nil is nothing.
type Selection struct {
	below map[string]*Selection // nil for the whole
}

// Select is what the paths lead to from a root that a ".." does not leave, and all without any. What is selected as a whole is
// one Selection, so that a tree to which many paths lead need be looked into once.
func Select(paths []string) *Selection {
	whole := &Selection{}
	if len(paths) == 0 {
		return whole
	}
	all := &Selection{below: map[string]*Selection{}}
	for _, given := range paths {
		at, names := all, strings.Split(path.Clean("/" + given)[1:], "/")
		for i, name := range names {
			switch {
			case name == "":
				return whole // It is the root.
			case at.Whole():
			case i == len(names)-1:
				at.below[name] = whole
			case at.below[name] == nil:
				at.below[name] = &Selection{below: map[string]*Selection{}}
			}
			at = at.In(name)
		}
	}
	return all
}

// Whole tells whether nothing is left out.
func (s *Selection) Whole() bool { return s != nil && s.below == nil }

// In is what is wanted of an entry.
func (s *Selection) In(name string) *Selection {
	if s == nil || s.Whole() {
		return s
	}
	return s.below[name]
}

// At is what is wanted of what a path leads to.
func (s *Selection) At(place string) *Selection {
	for name := range strings.SplitSeq(place, "/") {
		s = s.In(name)
	}
	return s
}
