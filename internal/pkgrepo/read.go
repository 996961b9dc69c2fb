package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
)

// Read reads a package in a commit of the repository: of a revision, or of what Resolve chose. It is fetched unless it is in the
// cache. The error is ErrNotFound where the package is not in the commit, kpt.ErrTooLarge, or one of package git.
func (r *Repository) Read(ctx context.Context, commit, pkg string) (kpt.Package, error) {
	w, err := r.work()
	if err != nil {
		return nil, err
	}
	if err := CheckPath(w.path(pkg)); err != nil {
		return nil, err
	}
	fetched, err := w.depot.client.Fetch(ctx, w.settings.Fetch, git.Want{Hash: commit, Ref: r.refOf(commit, pkg)})
	if err != nil {
		return nil, err
	}
	found, err := w.readFrom(fetched, pkg)
	return found, errors.Join(err, fetched.Close())
}

// readFrom reads a package in a commit that is open.
func (w work) readFrom(commit *git.Commit, pkg string) (kpt.Package, error) {
	folder, err := commit.Folder(w.path(pkg))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("package %s in commit %s: %w", shown(pkg), commit.Hash, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	found, err := kpt.Read(folder, ".", w.depot.options.Limits)
	if err != nil {
		return nil, fmt.Errorf("package %s in commit %s: %w", shown(pkg), commit.Hash, err)
	}
	return found, nil
}

// refOf is the ref of the last snapshot that leads to the commit; empty if none is known, which costs a question whether the
// repository still shows it.
func (r *Repository) refOf(commit, pkg string) string {
	s := r.Snapshot()
	if s == nil {
		return ""
	}
	if p := s.Packages[pkg]; p != nil {
		for _, all := range [][]Revision{p.Open, p.Published} {
			for i := range all {
				if all[i].Commit == commit {
					return all[i].Ref
				}
			}
		}
		if p.Branch != nil && s.Head == commit {
			return p.Branch.Ref
		}
	}
	for name, ref := range s.Refs {
		if ref.Target() == commit {
			return name
		}
	}
	return ""
}
