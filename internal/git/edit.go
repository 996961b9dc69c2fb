package git

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Edit replaces a folder of a tree.
type Edit struct {
	// Path is the folder, with slashes; the empty one is the root. A file in the way of it is replaced as well.
	Path string
	// Files are all that is in it afterwards, and beneath. Without any the folder goes, and so do those above in which nothing
	// else is: Git has no empty folders.
	Files []File
	// Tree is, instead of files, the id of a folder that one of the bases has, or a commit made before.
	Tree string
	// Keep are files in it, by their paths below it. The folders that hold them stay as they are. If Tree has such folders, it is
	// taken without them.
	Keep []string
}

// File is what a folder is given.
type File struct {
	// Path is below that of the Edit, with slashes.
	Path string
	// Mode is regular or fs.ModeSymlink. Of the permissions, only whether the owner may execute counts.
	Mode fs.FileMode
	// Content is the file's, or the target of a link.
	Content []byte
}

// The modes as trees have them.
const (
	octalTree       = "40000"
	octalRegular    = "100644"
	octalExecutable = "100755"
	octalLink       = "120000"
)

// editedTree is a tree that is edited.
type editedTree struct {
	entries map[string]entry
	// was is the tree that stands in its place before, and before what is in that; nil without one.
	was    plumbing.Hash
	before map[string]entry
}

// entry is what a folder has under a name. What is open has changed, and no id yet.
type entry struct {
	octal string
	hash  plumbing.Hash
	open  *editedTree
}

func (e entry) isDir() bool { return strings.TrimLeft(e.octal, "0") == octalTree }

// openTree reads a tree in order to edit it.
func (o *Objects) openTree(ctx context.Context, hash plumbing.Hash) (*editedTree, error) {
	content, err := o.read(ctx, hash, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	f := &editedTree{entries: map[string]entry{}, was: hash}
	err = parseTree(content, func(found treeEntry) error {
		f.entries[found.name] = entry{octal: string(found.octal), hash: found.hash}
		return nil
	})
	return f, err
}

// inside is what is in a folder under a name, opened to be edited; nil without a folder there.
func (o *Objects) inside(ctx context.Context, f *editedTree, name string) (*editedTree, error) {
	found, ok := f.entries[name]
	if !ok || !found.isDir() {
		return nil, nil
	}
	if found.open == nil {
		var err error
		if found.open, err = o.openTree(ctx, found.hash); err != nil {
			return nil, describe(name, err)
		}
		f.entries[name] = found
	}
	return found.open, nil
}

// edit replaces a folder beneath the root.
func (o *Objects) edit(ctx context.Context, root *editedTree, e Edit) error {
	steps, err := o.split(e.Path)
	if err != nil {
		return err
	}
	if len(e.Files) > o.options.MaxFiles {
		return describe(e.Path, limitErrorf("more than %d files", o.options.MaxFiles))
	}
	if e.Tree != "" {
		return o.plantAt(ctx, root, steps, e)
	}
	at, err := o.descend(ctx, root, steps, len(e.Files) > 0)
	if at == nil || err != nil {
		return err
	}
	at.before, at.entries = at.entries, map[string]entry{}
	for _, file := range e.Files {
		if err := o.put(ctx, at, e.Path, file); err != nil {
			return err
		}
	}
	return o.keep(ctx, &editedTree{entries: at.before}, at, e)
}

// descend opens the folder at the end of the steps. Where there is none, one is made, or else nil is returned.
func (o *Objects) descend(ctx context.Context, at *editedTree, steps []string, makes bool) (*editedTree, error) {
	for _, name := range steps {
		next, err := o.inside(ctx, at, name)
		if err != nil || next == nil && !makes {
			return nil, err
		}
		if next == nil {
			next = &editedTree{entries: map[string]entry{}}
			at.entries[name] = entry{octal: octalTree, open: next}
		}
		at = next
	}
	return at, nil
}

// plantAt puts a folder that is there already in the place of another, which may not be the root.
func (o *Objects) plantAt(ctx context.Context, root *editedTree, steps []string, e Edit) error {
	hash, err := parseHash(e.Tree)
	if err != nil {
		return describe(e.Path, err)
	}
	if len(steps) == 0 || len(e.Files) > 0 {
		return describe(e.Path, fmt.Errorf("%w: a folder in the place of the root, or of files", ErrUnsafeTree))
	}
	there, err := o.isThere(ctx, hash)
	if err != nil {
		return err
	}
	if !there {
		return describe(e.Path, fmt.Errorf("tree %s: %w", hash, errIncomplete))
	}
	planted, err := o.openTree(ctx, hash)
	if err != nil {
		return describe(e.Path, err) // It is no folder.
	}
	if len(planted.entries) == 0 {
		return o.edit(ctx, root, Edit{Path: e.Path, Keep: e.Keep}) // Git has no empty folders.
	}
	at, err := o.descend(ctx, root, steps[:len(steps)-1], true)
	if err != nil {
		return err
	}
	name := steps[len(steps)-1]
	if len(e.Keep) == 0 {
		at.entries[name] = entry{octal: octalTree, hash: hash}
		return nil
	}
	if err := o.drop(ctx, planted, e.Keep); err != nil {
		return describe(e.Path, err)
	}
	before, err := o.inside(ctx, at, name)
	if err != nil {
		return err
	}
	at.entries[name] = entry{octal: octalTree, open: planted}
	return o.keep(ctx, before, planted, e)
}

// put adds a file to a folder that is being replaced.
func (o *Objects) put(ctx context.Context, at *editedTree, below string, file File) error {
	whole := strings.TrimPrefix(below+"/"+file.Path, "/")
	octal, err := octalOf(file)
	if err != nil {
		return describe(whole, err)
	}
	if _, err := o.steps(whole); err != nil {
		return err
	}
	folders := strings.Split(file.Path, "/")
	name := folders[len(folders)-1]
	for _, step := range folders[:len(folders)-1] {
		next, ok := at.entries[step]
		if !ok {
			if next.open, err = o.successor(ctx, at, step); err != nil {
				return err
			}
			next.octal = octalTree
			at.entries[step] = next
		}
		if next.open == nil {
			return describe(whole, fmt.Errorf("%w: a file is in the place of a folder", ErrUnsafeTree))
		}
		at = next.open
	}
	if _, ok := at.entries[name]; ok {
		return describe(whole, fmt.Errorf("%w: two entries of this name", ErrUnsafeTree))
	}
	hash, err := o.store(ctx, plumbing.BlobObject, file.Content, at.before[name].hash)
	if err == nil {
		err = o.hold(ctx, editCost*int64(len(octal)+len(name)+len(hash)))
	}
	if err != nil {
		return describe(whole, err)
	}
	at.entries[name] = entry{octal: octal, hash: hash}
	return nil
}

// successor is an empty folder in the place of the one that a replaced folder had under the name.
func (o *Objects) successor(ctx context.Context, replaced *editedTree, name string) (*editedTree, error) {
	next := &editedTree{entries: map[string]entry{}}
	found, ok := replaced.before[name]
	if !ok || !found.isDir() {
		return next, nil
	}
	if found.open != nil {
		next.was, next.before = found.open.was, found.open.entries
		return next, nil
	}
	earlier, err := o.openTree(ctx, found.hash)
	if err != nil {
		return nil, describe(name, err)
	}
	next.was, next.before = earlier.was, earlier.entries
	return next, nil
}
