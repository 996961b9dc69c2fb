package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/tree"
)

const (
	// maxMetaBytes bounds commits and trees, which are read as a whole.
	maxMetaBytes = 16 << 20
	// metaCost is what each byte of a commit or a tree comes to at most: itself, and what is made of it.
	metaCost = 5
	// maxNameBytes bounds one name; no file system of Linux takes more.
	maxNameBytes = 255
	// maxLinkBytes bounds the target of a symbolic link; it is Linux's PATH_MAX.
	maxLinkBytes = 4096
)

// treeLimits bound one tree; see Options.
type treeLimits struct{ depth, files int }

// planter reads a whole tree and refuses all of it if anything in it is unsafe.
type planter struct {
	blobs      blobs
	limits     treeLimits
	files      int
	submodules []Submodule
}

// readTree checks and returns the tree below the root object, and the submodules in it.
func readTree(ctx context.Context, b blobs, root plumbing.Hash, limits treeLimits) (*tree.Node, []Submodule, error) {
	planter := &planter{blobs: b, limits: limits}
	top := &tree.Node{Name: tree.Root, Mode: fs.ModeDir | 0o755}
	if err := planter.fill(ctx, top, root, "", 0); err != nil {
		return nil, nil, err
	}
	return top, planter.submodules, nil
}

// fill reads the entries of a directory and of all below it. git sorts directories as if their names ended in a
// slash; here entries are in the plain order that fs.ReadDir promises. Directories in which there is nothing but
// directories are left out, as a checkout does not make them.
func (p *planter) fill(ctx context.Context, dir *tree.Node, hash plumbing.Hash, at string, depth int) error {
	if depth > p.limits.depth {
		return limitErrorf("%s is nested deeper than %d directories", transport.PrintableQuoted(at), p.limits.depth)
	}
	content, err := p.blobs.pack.loadMeta(ctx, hash, plumbing.TreeObject)
	if err != nil {
		return describe(at, err)
	}
	subtrees := map[*tree.Node]plumbing.Hash{}
	err = parseTree(content, func(entry treeEntry) error {
		child, err := p.admit(entry, at)
		if err != nil {
			return describe(below(at, entry.name), err)
		}
		if entry.mode.IsDir() {
			subtrees[child] = entry.hash
		}
		dir.Children = append(dir.Children, child)
		return nil
	})
	if err != nil {
		return describe(at, err)
	}
	slices.SortFunc(dir.Children, tree.Compare)
	for i, child := range dir.Children {
		inside := below(at, child.Name)
		if i > 0 && dir.Children[i-1].Name == child.Name {
			return describe(inside, fmt.Errorf("%w: two entries of this name", ErrUnsafeTree))
		}
		if subtree, ok := subtrees[child]; ok {
			if err := p.fill(ctx, child, subtree, inside, depth+1); err != nil {
				return err
			}
		}
	}
	dir.Children = slices.DeleteFunc(dir.Children, func(child *tree.Node) bool {
		_, isTree := subtrees[child]
		return isTree && len(child.Children) == 0
	})
	return nil
}

// admit checks one entry of a directory by itself.
func (p *planter) admit(entry treeEntry, at string) (*tree.Node, error) {
	if reason := unsafeName(entry.name); reason != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnsafeTree, reason)
	}
	if len(entry.name) > maxNameBytes {
		return nil, limitErrorf("name is longer than %d bytes", maxNameBytes)
	}
	if p.files++; p.files > p.limits.files {
		return nil, limitErrorf("tree has more than %d entries", p.limits.files)
	}
	n := &tree.Node{Name: entry.name, Mode: entry.mode, Source: p.blobs}
	if entry.mode&fs.ModeIrregular != 0 && len(p.submodules) <= MaxSubmodules {
		p.submodules = append(p.submodules, Submodule{Path: below(at, entry.name), Hash: entry.hash.String()})
	}
	if entry.mode&(fs.ModeDir|fs.ModeIrregular) != 0 {
		n.Mode = fs.ModeDir | 0o755 // Directories are read next; of a submodule a checkout has an empty folder.
		return n, nil
	}
	index, err := p.blobs.pack.find(entry.hash, plumbing.BlobObject)
	if err != nil {
		return nil, err
	}
	n.At, n.Size = int64(index), p.blobs.pack.objects[index].size
	if entry.mode&fs.ModeSymlink != 0 && n.Size > maxLinkBytes {
		return nil, fmt.Errorf("%w: link target has %d bytes", ErrUnsafeTree, n.Size)
	}
	return n, nil
}

// blobs are the contents of a commit's files.
type blobs struct {
	reading context.Context // ends when the commit is closed; opening a file of an fs.FS gives none
	pack    *pack
}

// Open implements tree.Source.
func (b blobs) Open(n *tree.Node) (io.ReadCloser, error) {
	return b.pack.open(b.reading, int32(n.At)) //nolint:gosec // The number of objects is limited.
}

// below joins without cleaning: an unsafe name must show as it is.
func below(at, name string) string {
	if at == "" {
		return name
	}
	return at + "/" + name
}

// placed is an error that already names its path.
type placed struct{ error }

func (e placed) Unwrap() error { return e.error }

// describe names the path, once.
func describe(at string, err error) error {
	if _, done := errors.AsType[placed](err); done {
		return err
	}
	if at == "" {
		at = "."
	}
	return placed{fmt.Errorf("path %s: %w", transport.PrintableQuoted(at), err)}
}

// loadMeta returns a commit or a tree.
func (p *pack) loadMeta(ctx context.Context, hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	index, err := p.find(hash, kind)
	if err != nil {
		return nil, err
	}
	if p.objects[index].size > maxMetaBytes {
		return nil, limitErrorf("%s %s is larger than %d bytes", kind, hash, maxMetaBytes)
	}
	if err := p.draw(ctx, metaCost*p.objects[index].size); err != nil {
		return nil, err
	}
	return p.load(ctx, index)
}
