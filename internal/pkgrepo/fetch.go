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

// maxFetches bounds how many fetches a look may take to find out which commits are bad.
const maxFetches = 64

// fetch reads commits, and halves them as long as one is bad, so that it harms no other.
func (e *explorer) fetch(ctx context.Context, gaps []*gap) error {
	if len(gaps) == 0 {
		return nil
	}
	wants := make([]git.Want, len(gaps))
	for i, g := range gaps {
		wants[i] = g.want
	}
	e.fetches--
	commits, err := e.depot.client.FetchAll(ctx, e.settings.Fetch, wants)
	if err == nil {
		return errors.Join(e.learn(gaps, commits), git.CloseAll(commits))
	}
	isHead := gaps[0].folders && len(gaps) == 1
	switch {
	case !isContent(err) || isHead:
		return err
	case len(gaps) == 1:
		return e.fail(gaps[0], err)
	case e.fetches <= 0:
		return e.postpone(gaps, err)
	}
	half := len(gaps) / 2
	if gaps[0].folders {
		half = 1 // Nothing is known without the branch.
	}
	if err := e.fetch(ctx, gaps[:half]); err != nil {
		return err
	}
	return e.fetch(ctx, gaps[half:])
}

// isContent tells whether an error is about what is in a commit, or in too many of them. Everything else is about the repository as a whole.
func isContent(err error) bool {
	return isAny(err, git.ErrRefNotFound, git.ErrProtocol, git.ErrUnsafeTree, git.ErrLimit, memory.ErrBudget)
}

// fail remembers why a commit cannot be read for as long as it is wanted: one bad commit is not fetched at each look.
func (e *explorer) fail(g *gap, err error) error {
	for _, path := range g.paths {
		e.snapshot.known.details[e.spot(g.want.Hash, path)] = detail{err: err}
	}
	return nil
}

// postpone leaves commits to the next look, which does not fetch again those that are known to be bad by then.
func (e *explorer) postpone(gaps []*gap, err error) error {
	if gaps[0].folders {
		return err
	}
	for _, g := range gaps {
		e.passing[g.want.Hash] = err
	}
	e.snapshot.partial = true
	return nil
}

// learn reads what is not known of the commits. In the place of one that is gone there is nil.
func (e *explorer) learn(gaps []*gap, commits []*git.Commit) error {
	for i, commit := range commits {
		g := gaps[i]
		switch {
		case commit == nil && !e.last:
			return fmt.Errorf("%w: %s", errVanished, g.want.Hash)
		case commit == nil && g.folders:
			return fmt.Errorf("%w: %s", git.ErrRefNotFound, g.want.Hash)
		case commit == nil:
			e.passing[g.want.Hash] = fmt.Errorf("%w: %s", git.ErrRefNotFound, g.want.Hash)
			e.snapshot.partial = true
			continue
		}
		if err := e.learnCommit(g, commit); err != nil {
			return err
		}
	}
	return nil
}

func (e *explorer) learnCommit(g *gap, commit *git.Commit) error {
	if g.folders {
		found, err := e.findFolders(commit)
		if err != nil {
			return err
		}
		e.snapshot.known.head, e.snapshot.known.found, e.parents = commit.Hash, found, commit.Parents
		for _, f := range found.outermost {
			g.paths = append(g.paths, f.Dir)
		}
	}
	about := parseNote(commit.Message)
	root, err := commit.TreeID("")
	if err != nil {
		return err
	}
	isOwn := about.tree == root
	for _, path := range g.paths {
		if e.isKnown(commit.Hash, path) {
			continue
		}
		if err := e.learnPackage(commit, path, detail{note: about.of(path), isOwn: isOwn}); err != nil {
			return err
		}
	}
	return nil
}

func (e *explorer) learnPackage(commit *git.Commit, path string, d detail) (err error) {
	pkg, _ := e.below(path)
	d.tree, err = commit.TreeID(path, e.snapshot.inner(pkg)...)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.err = fmt.Errorf("folder %s is not in the commit: %w", shown(path), fs.ErrNotExist)
	case isContent(err):
		d.err = err
	case err != nil:
		return err
	}
	e.snapshot.known.learn(e.spot(commit.Hash, path), d)
	if _, ok := e.snapshot.known.factsOf(d.tree); ok || d.err != nil {
		return nil //nolint:nilerr // What is wrong with the package is learnt with it.
	}
	l, err := e.readFacts(commit, path)
	if err == nil {
		e.snapshot.known.learnFacts(d.tree, l)
	}
	return err
}

// readFacts reads a Kptfile.
func (e *explorer) readFacts(commit *git.Commit, path string) (l learned, err error) {
	text, err := commit.ReadFile(path+"/"+kpt.KptfileName, e.depot.options.MaxKptfileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.err = fmt.Errorf("there is no %s in %s: %w", kpt.KptfileName, shown(path), fs.ErrNotExist)
		return l, nil
	case isContent(err):
		l.err = fmt.Errorf("%s of %s: %w", kpt.KptfileName, shown(path), err)
		return l, nil
	case err != nil:
		return l, err
	}
	return factsIn(text), nil
}
