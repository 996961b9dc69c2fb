package git

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/tree"
)

// TreeID is Git's id of a folder, 40 hexadecimal digits: folders with the same one hold the same. The path is as in an fs.FS, "."
// or empty for the root. fs.ErrNotExist where there is no such folder. It reads no more than the folders on the way, and
// nothing in them is checked. The id is the one that the folder has without the folders in it that hold the given files, by
// their paths in the folder; fs.ErrNotExist if nothing is left of it.
func (c *Commit) TreeID(path string, without ...string) (string, error) {
	hash, err := c.folder(path)
	if err == nil {
		hash, err = treeReader(c.planter.blobs.withTree).without(hash, without)
	}
	if err == nil && hash.IsZero() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", &fs.PathError{Op: "find", Path: path, Err: err}
	}
	return hash.String(), nil
}

// Folder is what is in a folder, as Tree is what is in the commit: it has been checked, and the limits of Options hold. The ID
// of its root is the folder's. fs.ErrNotExist where there is no such folder. Folders in it that hold the given files are left out.
func (c *Commit) Folder(path string, without ...string) (*tree.Tree, error) {
	hash, err := c.folder(path)
	if err != nil {
		return nil, &fs.PathError{Op: "find", Path: path, Err: err}
	}
	p := &planter{
		blobs: c.planter.blobs, limits: c.planter.limits, memo: c.planter.memo, sights: c.planter.sights, repository: c.planter.repository, ctx: c.planter.blobs.reading,
	}
	root, open := p.directory(tree.Root, hash, "", 0, tree.Select(nil))
	found, err := p.factsOf(root, "", 0, open)
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", transport.PrintableQuoted(path), err)
	}
	root.ID, root.Known = string(hash[:]), &found.Facts
	return (&tree.Tree{Root: root, Time: c.CommitterTime}).Without(without)
}

// ReadFile is the content of a plain file, ErrLimit when it has more bytes than allowed, fs.ErrNotExist where there is none.
// It reads no more than the folders on the way.
func (c *Commit) ReadFile(path string, limit int64) ([]byte, error) {
	content, err := c.readFile(path, limit)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return content, nil
}

func (c *Commit) readFile(path string, limit int64) (content []byte, err error) {
	dir, name := tree.Root, path
	if slash := strings.LastIndexByte(path, '/'); slash >= 0 {
		dir, name = path[:slash], path[slash+1:]
	}
	folder, err := c.folder(dir)
	if err != nil {
		return nil, err
	}
	entry, err := c.planter.blobs.entry(folder, name)
	if err != nil {
		return nil, err
	}
	if !entry.mode.IsRegular() {
		return nil, fs.ErrNotExist
	}
	pack := c.planter.blobs.pack
	index, err := pack.find(entry.hash, plumbing.BlobObject)
	if err != nil {
		return nil, err
	}
	if size := pack.objects[index].size; size > limit {
		return nil, limitErrorf("it has %d bytes, more than %d", size, limit)
	}
	err = pack.with(c.planter.blobs.reading, index, func(whole []byte) error {
		content = bytes.Clone(whole)
		return nil
	})
	return content, err
}

// lastFolder is the folder that was found last: what is asked of a commit is mostly about one.
type lastFolder struct {
	mu   sync.Mutex
	path string
	hash plumbing.Hash
}

// folder walks down to a folder.
func (c *Commit) folder(path string) (plumbing.Hash, error) {
	if path == "" || path == tree.Root {
		return c.root, nil
	}
	c.last.mu.Lock()
	known, hash := c.last.path, c.last.hash
	c.last.mu.Unlock()
	if known == path {
		return hash, nil
	}
	hash = c.root
	for name := range strings.SplitSeq(path, "/") {
		entry, err := c.planter.blobs.entry(hash, name)
		if err != nil {
			return hash, err
		}
		if !entry.mode.IsDir() {
			return hash, fs.ErrNotExist
		}
		hash = entry.hash
	}
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	c.last.path, c.last.hash = path, hash
	return hash, nil
}

// entry finds one entry of a tree.
func (b blobs) entry(folder plumbing.Hash, name string) (found treeEntry, err error) {
	if name == "" || name == "." || name == ".." {
		return found, fs.ErrInvalid
	}
	err = b.withTree(folder, func(content []byte) error {
		found, err = findEntry(content, name)
		return err
	})
	return found, err
}

// withTree hands over a tree object. Memory is drawn for as long as that takes.
func (b blobs) withTree(hash plumbing.Hash, use func(content []byte) error) error {
	if b.reading.Err() != nil {
		return context.Cause(b.reading)
	}
	index, err := b.pack.find(hash, plumbing.TreeObject)
	if err != nil {
		return err
	}
	if b.pack.objects[index].size > maxMetaBytes {
		return limitErrorf("%s %s is larger than %d bytes", plumbing.TreeObject, hash, maxMetaBytes)
	}
	return b.pack.with(b.reading, index, use)
}

// findEntry looks for the name in a tree object. What stands twice in a tree is refused by whoever reads all of it; here the
// first counts, as it does in Git.
func findEntry(content []byte, name string) (treeEntry, error) {
	for len(content) > 0 {
		line, rest, err := cutEntry(content)
		if err != nil {
			return treeEntry{}, err
		}
		if string(line.name) == name {
			return line.parse()
		}
		content = rest
	}
	return treeEntry{}, fs.ErrNotExist
}
