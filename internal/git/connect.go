package git

import (
	"context"
	"errors"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
)

// errIncomplete says that not all is there that a commit leads to.
var errIncomplete = errors.New("files of the commit are missing")

// connect sees to it that all is there that commits lead to. Where a tree is that an earlier fetch brought, all beneath it
// is, so this looks at what is new alone, unless some trees came without their files.
func (p *pack) connect(ctx context.Context, earlier *kept, tips ...tip) error {
	marked := make([]bool, len(p.objects))
	for _, t := range tips {
		first := p.kept
		if !t.bare && len(earlier.haves(true)) > len(earlier.haves(false)) {
			first = 0
		}
		if err := p.mark(ctx, t, first, marked); err != nil {
			return err
		}
	}
	return nil
}

// mark marks the objects that a commit leads to, among those that are not before the first.
func (p *pack) mark(ctx context.Context, t tip, first int, marked []bool) error {
	header, err := p.loadCommit(ctx, t.commit)
	if err != nil {
		return err
	}
	var trees []int32
	reach := func(hash plumbing.Hash, isTree bool) error {
		index, ok := p.lookUp(hash)
		if !ok && t.bare && !isTree {
			return nil
		}
		if !ok {
			return errIncomplete
		}
		if int(index) >= first && !marked[index] {
			marked[index] = true
			if isTree {
				trees = append(trees, index)
			}
		}
		return nil
	}
	err = errors.Join(reach(t.commit, false), reach(header.tree, true))
	for err == nil && len(trees) > 0 {
		tree := trees[len(trees)-1]
		trees = trees[:len(trees)-1]
		err = p.eachEntry(ctx, tree, func(entry treeEntry) error { return reach(entry.hash, entry.mode.IsDir()) })
	}
	return err
}

// eachEntry visits what is in a tree, but for submodules, whose commits are in other repositories. What is wrong with a tree
// is for whoever reads it to tell.
func (p *pack) eachEntry(ctx context.Context, tree int32, visit func(treeEntry) error) error {
	if p.objects[tree].size > maxMetaBytes {
		return nil
	}
	err := p.with(ctx, tree, func(content []byte) error {
		return parseTree(content, func(entry treeEntry) error {
			if entry.mode&fs.ModeIrregular != 0 {
				return nil
			}
			return visit(entry)
		})
	})
	if errors.Is(err, ErrUnsafeTree) {
		return nil
	}
	return err
}
