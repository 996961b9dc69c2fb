package archive

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Tree is an archive that was opened: a read-only file system of plain files and folders, for concurrent use.
type Tree struct {
	spool *os.File
	root  *node
}

var (
	_ fs.ReadDirFS = (*Tree)(nil)
	_ fs.StatFS    = (*Tree)(nil)
)

// Open opens the named file or folder.
func (t *Tree) Open(name string) (fs.File, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		return &openFolder{node: n, left: n.entries()}, nil
	}
	return &openFile{SectionReader: io.NewSectionReader(t.spool, n.offset, n.size), node: n}, nil
}

// ReadDir lists the named folder in lexical order.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a folder")}
	}
	return n.entries(), nil
}

// Stat describes the named file or folder.
func (t *Tree) Stat(name string) (fs.FileInfo, error) { return t.find("stat", name) }

// Close gives up the spooled bodies. Files of the tree cannot be read any more.
func (t *Tree) Close() error { return t.spool.Close() }

// find goes by the archive's own names, which unlike those of fs.ValidPath need not be UTF-8.
func (t *Tree) find(op, name string) (*node, error) {
	if !isPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n := t.root
	if name == root {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		i, ok := slices.BinarySearchFunc(n.children, part, func(n *node, name string) int {
			return strings.Compare(n.name, name)
		})
		if !ok {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		n = n.children[i]
	}
	return n, nil
}

// node is one entry, and its own FileInfo.
type node struct {
	name     string
	mode     fs.FileMode
	offset   int64
	size     int64
	children []*node // by name

	// While the archive is read.
	byName   map[string]*node
	declared bool // the folder has an entry of its own
}

func newFolder(name string) *node { return &node{name: name, mode: fs.ModeDir | folderMode} }

// sort turns what was collected into what is listed.
func (n *node) sort() {
	n.children = slices.SortedFunc(maps.Values(n.byName), func(a, b *node) int { return strings.Compare(a.name, b.name) })
	n.byName = nil
	for _, child := range n.children {
		child.sort()
	}
}

func (n *node) Name() string       { return n.name }
func (n *node) Size() int64        { return n.size }
func (n *node) Mode() fs.FileMode  { return n.mode }
func (n *node) ModTime() time.Time { return time.Time{} }
func (n *node) IsDir() bool        { return n.mode.IsDir() }
func (n *node) Sys() any           { return nil }

func (n *node) entries() []fs.DirEntry {
	entries := make([]fs.DirEntry, len(n.children))
	for i, child := range n.children {
		entries[i] = fs.FileInfoToDirEntry(child)
	}
	return entries
}

// openFile also is an io.ReaderAt and an io.Seeker.
type openFile struct {
	*io.SectionReader
	node *node
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }

// openFolder gives out a listing, all at once or in portions.
type openFolder struct {
	node fs.FileInfo
	left []fs.DirEntry
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFolder) Close() error               { return nil }

func (f *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.node.Name(), Err: errors.New("is a folder")}
}

func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(f.left) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.left) {
		n = len(f.left)
	}
	portion := f.left[:n:n]
	f.left = f.left[n:]
	return portion, nil
}
