package kpt

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// ErrTooLarge says that a package goes beyond the limits.
var ErrTooLarge = errors.New("the package is too large")

// ErrSubmodule says that something in a package is kept in another repository.
var ErrSubmodule = errors.New("the package holds a submodule")

// Limits bound what a package may take in memory. Zero is the default.
type Limits struct {
	// Bytes bounds all contents together, 64 MiB by default.
	Bytes int64
	// Files bounds how many files and links there are, 10,000 by default.
	Files int
	// FileBytes bounds every single content, 16 MiB by default.
	FileBytes int64
}

func (l Limits) withDefaults() Limits {
	return Limits{Bytes: cmp.Or(l.Bytes, 64<<20), Files: cmp.Or(l.Files, 10_000), FileBytes: cmp.Or(l.FileBytes, 16<<20)}
}

// Read reads the folder at root, "." for all of the file system, with everything beneath it. Contents are streamed, and no more
// than the limits allow is held: beyond them the error is ErrTooLarge. Links are read, not followed. The file system is one of
// git, which has no empty folders but for submodules: the error is ErrSubmodule for one, and fs.ErrNotExist without the folder.
func Read(fsys fs.FS, root string, limits Limits) (Package, error) {
	r := reader{fsys: fsys, root: path.Clean(root), limits: limits.withDefaults(), into: Package{}}
	if err := r.folder(r.root); err != nil {
		return nil, err
	}
	return r.into, nil
}

// reader fills a package.
type reader struct {
	fsys   fs.FS
	root   string
	limits Limits
	bytes  int64
	into   Package
}

func (r *reader) folder(name string) error {
	entries, err := fs.ReadDir(r.fsys, name)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%w: %q", ErrSubmodule, name)
	}
	for _, entry := range entries {
		below := path.Join(name, entry.Name())
		if entry.IsDir() {
			err = r.folder(below)
		} else {
			err = r.file(below, entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) file(name string, entry fs.DirEntry) error {
	if len(r.into) >= r.limits.Files {
		return fmt.Errorf("%w: it has more than %d files", ErrTooLarge, r.limits.Files)
	}
	file := File{Mode: 0o644}
	info, err := entry.Info()
	switch {
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink:
		file.Mode = fs.ModeSymlink
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is neither a file nor a folder: its mode is %s", name, info.Mode())
	case info.Mode().Perm()&0o100 != 0:
		file.Mode = 0o755
	}
	if file.Content, err = r.content(name, file.Mode, info.Size()); err != nil {
		return err
	}
	r.into[r.below(name)] = file
	return nil
}

// content is what a file holds or what a link points to. The size is a hint that is not believed.
func (r *reader) content(name string, mode fs.FileMode, size int64) ([]byte, error) {
	bound := min(r.limits.FileBytes, r.limits.Bytes-r.bytes)
	if size > bound {
		return nil, r.tooLarge(name)
	}
	content, err := readFile(r.fsys, name, mode, bound+1)
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > bound {
		return nil, r.tooLarge(name)
	}
	r.bytes += int64(len(content))
	return content, nil
}

func readFile(fsys fs.FS, name string, mode fs.FileMode, atMost int64) ([]byte, error) {
	if mode == fs.ModeSymlink {
		target, err := fs.ReadLink(fsys, name)
		return []byte(target), err
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // Reading told whether the content was good.
	return io.ReadAll(io.LimitReader(file, atMost))
}

func (r *reader) tooLarge(name string) error {
	if r.limits.FileBytes <= r.limits.Bytes-r.bytes {
		return fmt.Errorf("%w: %q has more than %d bytes", ErrTooLarge, name, r.limits.FileBytes)
	}
	return fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, r.limits.Bytes)
}

// below is the path below the root.
func (r *reader) below(name string) string {
	if r.root == "." {
		return name
	}
	return strings.TrimPrefix(name, r.root+"/")
}
