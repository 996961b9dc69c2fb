package git

import (
	"bytes"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/tree"
)

// treeReader passes the content of a tree object on.
type treeReader func(hash plumbing.Hash, use func(content []byte) error) error

// without computes the id that a folder has without the folders that hold the given files, and without folders that are empty then.
// The id is zero if nothing is left. Git need not have a tree of this id.
func (r treeReader) without(root plumbing.Hash, files []string) (left plumbing.Hash, err error) {
	if len(files) == 0 {
		return root, nil
	}
	return r.rest(root, tree.Select(files))
}

func (r treeReader) rest(root plumbing.Hash, marks *tree.Selection) (left plumbing.Hash, err error) {
	err = r(root, func(content []byte) error {
		kept, err := r.unmarked(content, marks)
		switch {
		case err != nil:
			return err
		case bytes.Equal(kept, content):
			left = root
		case len(kept) > 0:
			left = plumbing.ComputeHash(plumbing.TreeObject, kept)
		}
		return nil
	})
	return left, err
}

// unmarked returns what is left of the content of a tree object; nothing of a folder that holds one of the files.
func (r treeReader) unmarked(content []byte, marks *tree.Selection) (kept []byte, err error) {
	for len(content) > 0 {
		line, rest, err := cutEntry(content)
		if err != nil {
			return nil, err
		}
		entry := content[:len(content)-len(rest)]
		content = rest
		mode, err := parseMode(string(line.mode))
		if err != nil {
			return nil, err
		}
		inside := marks.In(string(line.name))
		switch {
		case mode.IsRegular() && inside.Whole():
			return nil, nil
		case inside == nil || inside.Whole() || !mode.IsDir():
			kept = append(kept, entry...)
			continue
		}
		left, err := r.rest(line.hash, inside)
		if err != nil {
			return nil, err
		}
		if !left.IsZero() {
			kept = append(append(kept, entry[:len(entry)-len(left)]...), left[:]...)
		}
	}
	return kept, nil
}
