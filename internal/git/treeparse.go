package git

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// treeEntry is one line of a tree object. A submodule is fs.ModeIrregular.
type treeEntry struct {
	name string
	mode fs.FileMode
	hash plumbing.Hash
	// octal is the mode as it stands there; it is good until the content of the tree is not needed any more.
	octal []byte
}

// The kinds of entries in a tree, as upper bits of the mode; see git-fast-import(1).
const (
	kindMask    = 0o170000
	kindTree    = 0o040000
	kindRegular = 0o100000
	kindLink    = 0o120000
	kindGitlink = 0o160000
)

// treeLine is an entry as it stands in a tree object.
type treeLine struct {
	mode, name []byte
	hash       plumbing.Hash
}

// cutEntry cuts the first entry off a tree object.
func cutEntry(content []byte) (line treeLine, rest []byte, err error) {
	head, rest, found := bytes.Cut(content, []byte{0})
	mode, name, spaced := bytes.Cut(head, []byte{' '})
	if !found || !spaced || len(rest) < len(plumbing.ZeroHash) {
		return line, nil, fmt.Errorf("%w: malformed tree object", ErrUnsafeTree)
	}
	return treeLine{mode, name, plumbing.Hash(rest[:len(plumbing.ZeroHash)])}, rest[len(plumbing.ZeroHash):], nil
}

// parse copies an entry out of its tree.
func (l treeLine) parse() (treeEntry, error) {
	mode, err := parseMode(string(l.mode))
	return treeEntry{name: string(l.name), mode: mode, hash: l.hash, octal: l.mode}, err
}

// parseTree reads a tree object. Errors say what is wrong, not where.
func parseTree(content []byte, visit func(treeEntry) error) error {
	for len(content) > 0 {
		line, rest, err := cutEntry(content)
		if err != nil {
			return err
		}
		entry, err := line.parse()
		if err != nil {
			return err
		}
		if err := visit(entry); err != nil {
			return err
		}
		content = rest
	}
	return nil
}

// parseMode gives a mode as Git itself reads it: of the permissions, only whether the owner may execute counts.
func parseMode(octal string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(octal, 8, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: malformed mode", ErrUnsafeTree)
	}
	switch {
	case mode&kindMask == kindTree:
		return fs.ModeDir | 0o755, nil
	case mode&kindMask == kindRegular && mode&0o100 != 0:
		return 0o755, nil
	case mode&kindMask == kindRegular:
		return 0o644, nil
	case mode == kindLink:
		return fs.ModeSymlink | 0o777, nil
	case mode == kindGitlink:
		return fs.ModeIrregular, nil
	}
	return 0, fmt.Errorf("%w: mode %o", ErrUnsafeTree, mode)
}
