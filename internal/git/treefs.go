package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// treeFS is a commit's tree as a file system. Names are bytes, as in Git: they need not be UTF-8.
type treeFS struct {
	reading context.Context // ends when the commit is closed; methods of an fs.FS are given none
	pack    *pack
	root    *node
	time    time.Time
}

var (
	_ fs.ReadDirFS  = (*treeFS)(nil)
	_ fs.StatFS     = (*treeFS)(nil)
	_ fs.ReadFileFS = (*treeFS)(nil)
	_ fs.ReadLinkFS = (*treeFS)(nil)
)

// errNoContent is returned for the content of links.
var errNoContent = errors.New("is neither a file nor a directory")

// Open opens a file, which is streamed, or a directory. Links are not followed: opening one fails.
func (t *treeFS) Open(name string) (fs.File, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.mode.IsDir() {
		return &openDir{info: t.info(n), entries: t.entries(n)}, nil
	}
	if !n.mode.IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNoContent}
	}
	content, err := t.pack.open(t.reading, n.object)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{ReadCloser: content, info: t.info(n)}, nil
}

// ReadDir lists a directory in the order of the names' bytes.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return t.entries(n), nil
}

// Stat describes an entry without reading it. As links are not followed, it is Lstat.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) { return t.Lstat(name) }

// Lstat describes an entry without reading it.
func (t *treeFS) Lstat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return t.info(n), nil
}

// ReadFile returns a file's content.
func (t *treeFS) ReadFile(name string) ([]byte, error) {
	n, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNoContent}
	}
	return t.content("read", name, n)
}

// ReadLink returns where a link points to, as it stands in the tree.
func (t *treeFS) ReadLink(name string) (string, error) {
	n, err := t.find("readlink", name)
	if err != nil {
		return "", err
	}
	if n.mode.Type() != fs.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	target, err := t.content("readlink", name, n)
	return string(target), err
}

func (t *treeFS) content(operation, name string, n *node) ([]byte, error) {
	stream, err := t.pack.open(t.reading, n.object)
	if err != nil {
		return nil, &fs.PathError{Op: operation, Path: name, Err: err}
	}
	defer func() { _ = stream.Close() }() // Reading told whether the data was good.
	content := make([]byte, n.size)
	if _, err := io.ReadFull(stream, content); err != nil {
		return nil, &fs.PathError{Op: operation, Path: name, Err: err}
	}
	return content, nil
}

// find walks down to a name: elements with slashes between, without ".", ".." and empty elements.
func (t *treeFS) find(operation, name string) (*node, error) {
	n := t.root
	if name == "." {
		return n, nil
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." {
			return nil, &fs.PathError{Op: operation, Path: name, Err: fs.ErrInvalid}
		}
		if n = n.child(element); n == nil {
			return nil, &fs.PathError{Op: operation, Path: name, Err: fs.ErrNotExist}
		}
	}
	return n, nil
}

func (t *treeFS) info(n *node) fileInfo { return fileInfo{node: n, time: t.time} }

func (t *treeFS) entries(n *node) []fs.DirEntry {
	entries := make([]fs.DirEntry, len(n.children))
	for i, child := range n.children {
		entries[i] = fs.FileInfoToDirEntry(t.info(child))
	}
	return entries
}

// fileInfo describes a node. Every entry bears the commit's time: a tree knows none.
type fileInfo struct {
	node *node
	time time.Time
}

func (i fileInfo) Name() string       { return i.node.name }
func (i fileInfo) Size() int64        { return i.node.size }
func (i fileInfo) Mode() fs.FileMode  { return i.node.mode }
func (i fileInfo) ModTime() time.Time { return i.time }
func (i fileInfo) IsDir() bool        { return i.node.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

// openFile streams a blob.
type openFile struct {
	io.ReadCloser
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// openDir hands out entries bit by bit, as fs.ReadDirFile wants it.
type openDir struct {
	info    fileInfo
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	head := slices.Clone(d.entries[:n])
	d.entries = d.entries[n:]
	return head, nil
}
