package git

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// octalOf is the mode that a file has in a tree.
func octalOf(file File) (string, error) {
	switch {
	case file.Mode.IsRegular() && file.Mode&0o100 != 0:
		return octalExecutable, nil
	case file.Mode.IsRegular():
		return octalRegular, nil
	case file.Mode.Type() != fs.ModeSymlink:
		return "", fmt.Errorf("%w: mode %v", ErrUnsafeTree, file.Mode)
	case len(file.Content) == 0 || len(file.Content) > maxLinkBytes || bytes.IndexByte(file.Content, 0) >= 0:
		return "", fmt.Errorf("%w: link target is empty, holds a NUL or has more than %d bytes", ErrUnsafeTree, maxLinkBytes)
	case isGitFile(file.Path):
		return "", fmt.Errorf("%w: Git reads this file and follows no link", ErrUnsafeTree)
	}
	return octalLink, nil
}

// isGitFile knows the files that Git itself reads in a tree, which must not be links; see gitmodules(5) and gitattributes(5).
func isGitFile(path string) bool {
	switch strings.ToLower(path[strings.LastIndexByte(path, '/')+1:]) {
	case ".gitmodules", ".gitattributes", ".gitignore", ".mailmap":
		return true
	}
	return false
}

// writeTree stores a folder and what has changed beneath it. Folders in which nothing is are left out of it.
func (o *Objects) writeTree(ctx context.Context, f *editedTree) (plumbing.Hash, error) {
	for name, found := range f.entries {
		if found.open == nil {
			continue
		}
		hash, err := o.writeTree(ctx, found.open)
		if err != nil {
			return hash, err
		}
		if len(found.open.entries) == 0 {
			delete(f.entries, name)
			continue
		}
		f.entries[name] = entry{octal: octalTree, hash: hash}
	}
	return o.store(ctx, plumbing.TreeObject, encodeTree(f.entries), f.was)
}

// encodeTree writes the entries in Git's order, in which the name of a folder ends in a slash.
func encodeTree(entries map[string]entry) []byte {
	names := slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return cmp.Compare(sortKey(a, entries[a]), sortKey(b, entries[b]))
	})
	var content []byte
	for _, name := range names {
		e := entries[name]
		content = append(append(append(content, e.octal...), ' '), name...)
		content = append(append(content, 0), e.hash[:]...)
	}
	return content
}

func sortKey(name string, e entry) string {
	if e.isDir() {
		return name + "/"
	}
	return name
}
