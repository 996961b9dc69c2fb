package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
)

// Read reads a package in a commit of the repository: of a revision, or of what Resolve chose. It is fetched unless it is in the
// cache. What it takes is drawn from the context's account. The error is ErrNotFound where the package is not in the commit,
// kpt.ErrTooLarge, or one of package git.
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
	found, _, err := w.readFrom(ctx, fetched, pkg, r.Snapshot().inner(pkg))
	return found, errors.Join(err, fetched.Close())
}

// ReadTree reads a package as the branch once had it, by Git's name of its folder. It is looked for among what was published, and in
// the newest commits of the branch. The error is ErrNotFound where it is in none, and as Read's.
func (r *Repository) ReadTree(ctx context.Context, pkg, tree string) (kpt.Package, error) {
	w, err := r.work()
	if err != nil {
		return nil, err
	}
	if err := CheckPath(w.path(pkg)); err != nil {
		return nil, err
	}
	s := r.Snapshot()
	if p := s.Package(pkg); p != nil {
		if found := first(p.Published, func(r *Revision) bool { return r.Tree != "" && r.Tree == tree }); found != nil {
			return r.Read(ctx, found.Commit, pkg)
		}
	}
	commit := ""
	if s != nil && s.Head != "" {
		tip := git.Want{Hash: s.Head, Ref: w.branch}
		commit, err = w.depot.client.LastSeen(ctx, w.settings.Fetch, w.seen(s, tip, pkg, tree, w.depot.options.MaxWalk))
	}
	if err == nil && commit == "" {
		err = fmt.Errorf("package %s with tree %s: %w", shown(pkg), shown(tree), ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return r.Read(ctx, commit, pkg)
}

// Reaches proves that a commit has another one in its history, or is that. The ref says where the commit was found, and may be empty. The
// error is git.ErrRefNotFound or git.ErrLimit where there is no proof, and as git.Client.Reaches'.
func (r *Repository) Reaches(ctx context.Context, commit, ref, other string) error {
	w, err := r.work()
	if err != nil {
		return err
	}
	return w.depot.client.Reaches(ctx, w.settings.Fetch, git.Want{Hash: commit, Ref: ref}, other)
}

// readCost is what each byte of a package comes to while it is read.
const readCost = 2

// readFrom reads a package in a commit that is open, without inner packages, which have these Kptfiles. It has drawn so much memory.
func (w work) readFrom(ctx context.Context, commit *git.Commit, pkg string, inner []string) (found kpt.Package, drawn int64, err error) {
	folder, err := commit.Folder(w.path(pkg), inner...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("package %s in commit %s: %w", shown(pkg), commit.Hash, ErrNotFound)
	}
	if err != nil {
		return nil, 0, err
	}
	facts, err := folder.Root.Facts()
	if err != nil {
		return nil, 0, err
	}
	cost := readCost * facts.Weight
	if err = memory.Draw(ctx, cost); err == nil {
		drawn = cost
		found, err = kpt.Read(folder, ".", kpt.Limits{})
	}
	if err != nil {
		return nil, drawn, fmt.Errorf("package %s in commit %s: %w", shown(pkg), commit.Hash, err)
	}
	return found, drawn, nil
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
			if found := first(all, func(r *Revision) bool { return r.Commit == commit }); found != nil {
				return found.Ref
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
