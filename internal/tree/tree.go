// Package tree is a read-only file system whose entries are in memory and whose contents are elsewhere.
// It does not know where either come from.
package tree

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Root names the topmost folder, as in every fs.FS.
const Root = "."

// Node is one entry of a tree.
type Node struct {
	Name string
	Mode fs.FileMode
	Size int64
	// ID names the content of a file, or everything beneath a folder: nodes with the same one hold the same. Empty where
	// there is none.
	ID string
	// Children are those of a folder, in the order of Compare, each under a name of its own. Instead of them a folder may
	// have a Lister that finds them; it is asked often and from several goroutines.
	Children []*Node
	Lister   func() ([]*Node, error)
	// Known are the facts about a folder, where they are known already.
	Known *Facts
	// Source has the content of a file or link, and finds it At.
	Source Source
	At     int64
}

// Source has contents.
type Source interface {
	// Open streams the content of a file or link.
	Open(n *Node) (io.ReadCloser, error)
}

// Compare orders nodes by the bytes of their names.
func Compare(a, b *Node) int { return strings.Compare(a.Name, b.Name) }

// List returns the children of a folder.
func (n *Node) List() ([]*Node, error) {
	if n.Lister != nil {
		return n.Lister()
	}
	return n.Children, nil
}

// Find returns the child of the name, and nil where there is none.
func (n *Node) Find(name string) (*Node, error) {
	children, err := n.List()
	place, found := search(children, name)
	if err != nil || !found {
		return nil, err
	}
	return children[place], nil
}

// search returns where among the children the name is or belongs.
func search(children []*Node, name string) (place int, found bool) {
	return slices.BinarySearchFunc(children, name, func(child *Node, name string) int {
		return strings.Compare(child.Name, name)
	})
}

// Tree is a file system of plain files, folders and links, for concurrent use. Names are bytes: they need not be UTF-8.
type Tree struct {
	Root *Node
	// Time is when all entries were changed.
	Time time.Time
}

var (
	_ fs.ReadDirFS  = (*Tree)(nil)
	_ fs.ReadLinkFS = (*Tree)(nil)
	_ fs.StatFS     = (*Tree)(nil)
)

// Top is the root.
func (t *Tree) Top() *Node { return t.Root }

// Open opens a file, which is streamed, or a folder. Links are not followed: opening one fails.
func (t *Tree) Open(name string) (fs.File, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.Mode.IsDir() {
		entries, err := t.entries("open", name, n)
		return &folder{info: t.info(n), left: entries}, err
	}
	content, err := n.open("open", name, 0)
	if err != nil {
		return nil, err
	}
	return &file{ReadCloser: content, info: t.info(n)}, nil
}

// ReadDir lists a folder in the order of the names' bytes.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.Mode.IsDir() {
		return nil, otherKind("readdir", name, n)
	}
	return t.entries("readdir", name, n)
}

// Stat describes an entry without reading it. As links are not followed, it is Lstat.
func (t *Tree) Stat(name string) (fs.FileInfo, error) { return t.Lstat(name) }

// Lstat describes an entry without reading it.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return t.info(n), nil
}

// ReadLink returns where a link points to, as it stands in the tree.
func (t *Tree) ReadLink(name string) (string, error) {
	n, err := t.find("readlink", name)
	if err != nil {
		return "", err
	}
	stream, err := n.open("readlink", name, fs.ModeSymlink)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }() // Reading told whether the data was good.
	target, err := io.ReadAll(stream)
	return string(target), err
}

// find walks down to a name: elements with slashes between, without ".", ".." and empty elements.
func (t *Tree) find(operation, name string) (*Node, error) {
	n := t.Root
	if name == Root {
		return n, nil
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." {
			return nil, &fs.PathError{Op: operation, Path: name, Err: fs.ErrInvalid}
		}
		child, err := n.Find(element)
		if err == nil && child == nil {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, &fs.PathError{Op: operation, Path: name, Err: err}
		}
		n = child
	}
	return n, nil
}

// open streams the content of a node of the kind.
func (n *Node) open(operation, name string, kind fs.FileMode) (io.ReadCloser, error) {
	if n.Mode.Type() != kind {
		return nil, otherKind(operation, name, n)
	}
	content, err := n.Source.Open(n)
	if err != nil {
		return nil, &fs.PathError{Op: operation, Path: name, Err: err}
	}
	return content, nil
}

func otherKind(operation, name string, n *Node) error {
	return &fs.PathError{Op: operation, Path: name, Err: fmt.Errorf("%w: its mode is %s", fs.ErrInvalid, n.Mode)}
}

func (t *Tree) info(n *Node) info { return info{node: n, time: t.Time} }

func (t *Tree) entries(operation, name string, n *Node) ([]fs.DirEntry, error) {
	children, err := n.List()
	if err != nil {
		return nil, &fs.PathError{Op: operation, Path: name, Err: err}
	}
	entries := make([]fs.DirEntry, len(children))
	for i, child := range children {
		entries[i] = fs.FileInfoToDirEntry(t.info(child))
	}
	return entries, nil
}

// info describes a node.
type info struct {
	node *Node
	time time.Time
}

func (i info) Name() string       { return i.node.Name }
func (i info) Size() int64        { return i.node.Size }
func (i info) Mode() fs.FileMode  { return i.node.Mode }
func (i info) ModTime() time.Time { return i.time }
func (i info) IsDir() bool        { return i.node.Mode.IsDir() }
func (i info) Sys() any           { return nil }

// file streams a content.
type file struct {
	io.ReadCloser
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// folder gives out a listing, all at once or in portions.
type folder struct {
	info info
	left []fs.DirEntry
}

func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *folder) Close() error               { return nil }

func (f *folder) Read([]byte) (int, error) { return 0, otherKind("read", f.info.Name(), f.info.node) }

func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
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
