package tree

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Only is the tree with nothing but what the paths lead to, and all of it without any. A ".." leads no further than to the
// root. The error is fs.ErrNotExist where a path leads nowhere. It copies no more than the folders on the way.
func (t *Tree) Only(paths []string) (*Tree, error) {
	if len(paths) == 0 {
		return t, nil
	}
	cleaned, everything := make([]string, 0, len(paths)), false
	for _, given := range paths {
		name := path.Clean("/" + given)[1:]
		if name == "" {
			everything = true
			continue
		}
		if _, err := t.find("find", name); err != nil {
			return nil, fmt.Errorf("%.255q does not exist in the repository: %w", given, fs.ErrNotExist)
		}
		cleaned = append(cleaned, name)
	}
	if everything {
		return t, nil
	}
	kept := *t
	kept.Root = t.Root.only(cleaned)
	return &kept, nil
}

// only copies a folder with what the paths in it lead to.
func (n *Node) only(paths []string) *Node {
	whole, inside := map[string]bool{}, map[string][]string{}
	for _, name := range paths {
		first, rest, deeper := strings.Cut(name, "/")
		if deeper {
			inside[first] = append(inside[first], rest)
		} else {
			whole[first] = true
		}
	}
	kept := *n
	kept.Children = nil
	for _, child := range n.Children {
		if below := inside[child.Name]; whole[child.Name] {
			kept.Children = append(kept.Children, child)
		} else if below != nil {
			kept.Children = append(kept.Children, child.only(below))
		}
	}
	return &kept
}
