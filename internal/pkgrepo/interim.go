package pkgrepo

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/tree"
)

func fetchAll(ctx context.Context, c *git.Client, remote git.Remote, wants []git.Want) (commits []*git.Commit, err error) {
	for _, want := range wants {
		commit, err := c.Fetch(ctx, remote, want)
		if err != nil {
			return nil, errors.Join(err, closeAll(commits))
		}
		commits = append(commits, commit)
	}
	return commits, nil
}

func closeAll(commits []*git.Commit) (err error) {
	for _, commit := range commits {
		if commit != nil {
			err = errors.Join(err, commit.Close())
		}
	}
	return err
}

func folderOf(commit *git.Commit, at string) (*tree.Tree, error) {
	node := commit.Tree().Root
	for name := range strings.SplitSeq(at, "/") {
		if !node.Mode.IsDir() {
			return nil, fs.ErrNotExist
		}
		next, err := node.Find(name)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return nil, fs.ErrNotExist
		}
		node = next
	}
	if !node.Mode.IsDir() {
		return nil, fs.ErrNotExist
	}
	return &tree.Tree{Root: node, Time: commit.CommitterTime}, nil
}

func treeID(commit *git.Commit, at string) (string, error) {
	found, err := folderOf(commit, at)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString([]byte(found.Root.ID)), nil
}

func readFile(commit *git.Commit, name string, most int64) ([]byte, error) {
	info, err := commit.Tree().Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fs.ErrNotExist
	case info.Size() > most:
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrLimit, info.Size(), most)
	}
	file, err := commit.Tree().Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	return text, errors.Join(err, file.Close())
}

func find(commit *git.Commit, name string, visit func(dir, tree string) error) error {
	return fs.WalkDir(commit.Tree(), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(at) != name {
			return err
		}
		id := ""
		if dir := path.Dir(at); dir != "." {
			if id, err = treeID(commit, dir); err != nil {
				return err
			}
		}
		return visit(path.Dir(at), id)
	})
}

func message(*git.Commit) string { return "" }

func (p *plan) hasSeen(context.Context, *Revision, string) (bool, error) { return false, nil }
func (p *plan) isAncestor(context.Context, *Revision, []string) bool     { return false }
func (w work) publications(context.Context, *Snapshot, map[string]*Revision) ([]publication, error) {
	return nil, nil
}
