package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// maxTold is how many differences an error tells.
const maxTold = 5

// entries are the files of a Git tree, by their paths.
func entries(tree *object.Tree) (map[string]object.TreeEntry, error) {
	all := map[string]object.TreeEntry{}
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	for {
		name, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if entry.Mode.IsRegular() || entry.Mode == filemode.Executable {
			all[name] = entry
		}
	}
}

// differs tells what in the layer is not as it was committed, and what was committed and is gone. It goes by the bytes: what Git
// converts on its way into a work tree differs.
func (l *layer) differs(ctx context.Context, committed map[string]object.TreeEntry) ([]string, error) {
	var different []string
	err := fs.WalkDir(l.tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		was, known := committed[name]
		if !known {
			different = append(different, name+" was not committed")
			return nil
		}
		now, err := l.hash(name, info.Size())
		if isExecutable := info.Mode()&0o100 != 0; err == nil && (now != was.Hash || isExecutable != (was.Mode == filemode.Executable)) {
			different = append(different, name+" has changed")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(committed)) {
		if _, err := l.folder.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			different = append(different, name+" is gone")
		}
	}
	return different, nil
}

// hash names the content of a file as Git does.
func (l *layer) hash(name string, size int64) (plumbing.Hash, error) {
	file, err := l.tree.Open(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	_, err = io.Copy(hasher, file)
	return hasher.Sum(), err
}

// few names the first of some differences.
func few(different []string) string {
	if more := len(different) - maxTold; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(different[:maxTold], ", "), more)
	}
	return strings.Join(different, ", ")
}
