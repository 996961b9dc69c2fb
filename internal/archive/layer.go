package archive

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// layer is a tree with one mount over it.
type layer struct {
	below    fs.FS
	tree     fs.FS
	from, to string
	folder   bool // what is mounted is a folder
}

var (
	_ fs.ReadDirFS = (*layer)(nil)
	_ fs.StatFS    = (*layer)(nil)
)

// mounted translates a path at or beneath the mount into one of the mounted tree; beneath a file there is none.
func (l *layer) mounted(name string) (string, bool) {
	if name == l.to {
		return l.from, true
	}
	rest, ok := strings.CutPrefix(name, l.to+"/")
	if !ok || !l.folder {
		return "", ok
	}
	return join(l.from, rest), true
}

// above tells whether a path is a folder on the way to the mount.
func (l *layer) above(name string) bool {
	return name == root || strings.HasPrefix(l.to, name+"/")
}

// Open opens the named file or folder.
func (l *layer) Open(name string) (fs.File, error) {
	inner, mounted := l.mounted(name)
	switch {
	case !isPath(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	case mounted && inner == "":
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case mounted && name != l.to:
		return l.tree.Open(inner)
	case mounted && !l.folder:
		file, err := l.tree.Open(inner)
		if err != nil {
			return nil, err
		}
		return &renamedFile{File: file, name: path.Base(name)}, nil
	case !mounted && !l.above(name):
		return l.below.Open(name)
	}
	// The mounted folder goes by another name here, and those above it list one entry more.
	info, err := l.Stat(name)
	if err != nil {
		return nil, err
	}
	entries, err := l.ReadDir(name)
	if err != nil {
		return nil, err
	}
	return &openFolder{node: info, left: entries}, nil
}

// ReadDir lists the named folder in lexical order.
func (l *layer) ReadDir(name string) ([]fs.DirEntry, error) {
	inner, mounted := l.mounted(name)
	switch {
	case !isPath(name):
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	case mounted && inner == "":
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	case mounted:
		return fs.ReadDir(l.tree, inner)
	case !l.above(name):
		return fs.ReadDir(l.below, name)
	}
	entries, err := fs.ReadDir(l.below, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	toward := l.to
	if name != root {
		toward = l.to[len(name)+1:]
	}
	next, _, more := strings.Cut(toward, "/")
	if more && findEntry(entries, next) != nil {
		return entries, nil
	}
	info, err := l.Stat(join(name, next))
	if err != nil {
		return nil, err
	}
	// The slice may be the tree's own.
	listed := slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool { return e.Name() == next })
	listed = append(listed, fs.FileInfoToDirEntry(info))
	slices.SortFunc(listed, byName)
	return listed, nil
}

// Stat describes the named file or folder.
func (l *layer) Stat(name string) (fs.FileInfo, error) {
	inner, mounted := l.mounted(name)
	switch {
	case !isPath(name):
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	case mounted && inner == "":
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	case mounted:
		info, err := fs.Stat(l.tree, inner)
		if err != nil || name != l.to {
			return info, err
		}
		return renamedInfo{FileInfo: info, name: path.Base(name)}, nil
	}
	info, err := fs.Stat(l.below, name)
	if errors.Is(err, fs.ErrNotExist) && l.above(name) {
		return madeUpFolder(path.Base(name)), nil
	}
	return info, err
}

type renamedFile struct {
	fs.File
	name string
}

func (f *renamedFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return renamedInfo{FileInfo: info, name: f.name}, nil
}

type renamedInfo struct {
	fs.FileInfo
	name string
}

func (i renamedInfo) Name() string { return i.name }

// madeUpFolder is a folder that no tree holds, by its name.
type madeUpFolder string

func (f madeUpFolder) Name() string     { return string(f) }
func (madeUpFolder) Size() int64        { return 0 }
func (madeUpFolder) Mode() fs.FileMode  { return fs.ModeDir | folderMode }
func (madeUpFolder) ModTime() time.Time { return time.Time{} }
func (madeUpFolder) IsDir() bool        { return true }
func (madeUpFolder) Sys() any           { return nil }
