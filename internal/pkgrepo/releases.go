package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
)

// publish plans a commit on the branch that takes over an open change.
func (p *plan) publish(ctx context.Context, t *task, pkg *Package) error {
	var leave []git.Update
	change := (*Revision)(nil)
	for _, lifecycle := range []Lifecycle{Proposed, Draft} {
		if r := pkg.open(t.workspace, lifecycle); r != nil && r.Commit == t.Expect {
			leave = append(leave, git.Update{Ref: r.Ref, Old: r.Commit})
			change = r
		}
	}
	if done := pkg.publishedFrom(t.Expect); done != nil && (change == nil || change.Tree == done.Tree) {
		p.wasPublished(t, done, leave)
		return nil
	}
	switch other := pkg.Find(t.workspace); {
	case change == nil && other == nil:
		return ErrGone
	case change == nil:
		return expect(t, other)
	case change.Err != nil:
		return change.Err
	}
	if _, err := p.base(change.Commit); err != nil {
		return err
	}
	number, err := p.nextNumber(pkg)
	if err != nil {
		return err
	}
	if err := errors.Join(p.clear(ctx, t.Package), p.upToDate(ctx, change), p.isInside(ctx, change), p.isOfBranch(ctx, change)); err != nil {
		return err
	}
	path, name := p.path(t.Package), numbered(number)
	tip, _ := p.snapshot.known.detail(p.spot(p.snapshot, change.Commit, t.Package))
	t.Message.Pristine = tip.note.pristine
	message := t.Message.text(fmt.Sprintf("Publish %s %s", t.Package, name), trailer{packageTrailer, path},
		trailer{revisionTrailer, name}, trailer{workspaceTrailer, t.workspace}, trailer{changeTrailer, change.Commit})
	p.tags[t.Package] = append(p.tags[t.Package], name)
	commit, err := p.takeOver(ctx, change, message+porchLine(path, t.workspace))
	if err != nil {
		p.tags[t.Package] = p.tags[t.Package][:len(p.tags[t.Package])-1]
		return err
	}
	p.remember(commit, t.Package, detail{tree: change.Tree, note: note{pkg: path, workspace: t.workspace, revision: name, change: change.Commit}})
	t.onBranch, p.numbers[pkg.Path] = true, number
	t.push(Result{Commit: commit, Tree: change.Tree, Workspace: t.workspace, Number: number},
		slices.Insert(leave, 0, git.Update{Ref: p.ref(place{Published, t.Package, name}), New: commit})...)
	return nil
}

// takeOver makes the commit on the branch that has the package of an open change. Inner packages stay as the branch has them.
func (p *plan) takeOver(ctx context.Context, change *Revision, message string) (string, error) {
	if err := p.bringsNone(change); err != nil {
		return "", err
	}
	path := p.path(change.Package)
	whole, err := p.objects.TreeAt(ctx, change.Commit, path)
	if err != nil {
		return "", err
	}
	var merged []string
	if !change.IsOwn {
		merged = []string{change.Commit}
	}
	return p.extend(ctx, git.Edit{Path: path, Tree: whole, Keep: p.snapshot.inner(change.Package)}, message, merged...)
}

// wasPublished ends a publication that was made before. What a crash has left of the open change goes.
func (p *plan) wasPublished(t *task, done *Revision, leave []git.Update) {
	r := Result{Commit: done.Commit, Tree: done.Tree, Workspace: t.workspace, Number: done.Number}
	if len(leave) == 0 {
		r.Changed = t.hasTried(done.Commit)
		t.settle(r)
		return
	}
	t.push(r, leave...)
}

// publishedFrom is the newest revision that was published from the tip of an open change; nil once the package has left the branch: who
// brings the change back then has it published again.
func (p *Package) publishedFrom(tip string) *Revision {
	if p == nil || p.Branch == nil {
		return nil
	}
	return first(p.newest(), func(r *Revision) bool { return r.Source == tip })
}

// upToDate compares what is on the branch with what the change was begun on: a variant's names it, and of people's the history
// tells what their authors had before them.
func (p *plan) upToDate(ctx context.Context, change *Revision) error {
	now, err := p.treeAt(ctx, p.head, change.Package)
	if err != nil || now == change.Tree {
		return err
	}
	begun := change.Facts.Base
	isBegun := now == begun || now == "" && (begun == "" || begun == kpt.BaseNone)
	if workspaceNumber(change.Workspace) == 0 || begun == "" {
		if isBegun, err = p.isBegunOn(ctx, change, now); err != nil {
			return err
		}
	}
	switch {
	case isBegun:
		return nil
	case now == "":
		return fmt.Errorf("%w: it is not on the branch any more", ErrOutOfDate)
	}
	return fmt.Errorf("%w: the branch has tree %s", ErrOutOfDate, now)
}

// isBegunOn tells whether the package had the tree since the history of an open change left that of the branch, or what was published.
// What it had earlier does not count: who took something back on the branch, or set the branch back, did not do so for a change to
// bring it again. Where nobody can tell when it left, all of its history counts.
func (p *plan) isBegunOn(ctx context.Context, change *Revision, tree string) (bool, error) {
	if p.snapshot.Head == "" {
		return tree == "", nil
	}
	left, most := map[string]bool{}, p.depot.options.MaxWalk
	pkg := p.snapshot.Package(change.Package)
	for _, r := range pkg.Published {
		left[r.Commit] = true
	}
	for _, commit := range pkg.beside { // The branch may have been set back behind them.
		left[commit] = true
	}
	collect := func(c git.Logged) bool {
		left[c.Hash] = true
		return true
	}
	tip := git.Want{Hash: p.snapshot.Head, Ref: p.branch}
	if err := p.depot.client.Log(ctx, p.settings.Fetch, tip, most, collect); err != nil {
		return false, err
	}
	steps, isMet := 0, false
	find := func(c git.Logged) bool {
		steps++
		isMet = left[c.Hash]
		return !isMet
	}
	tip = git.Want{Hash: change.Commit, Ref: change.Ref}
	if err := p.depot.client.Log(ctx, p.settings.Fetch, tip, most, find); err != nil {
		return false, err
	}
	if tree == "" && !isMet {
		return true, nil // It was begun before the branch was.
	}
	return p.hasSeen(ctx, change, tree, steps)
}

// hasSeen tells whether the package had the tree in the newest commits of an open change.
func (p *plan) hasSeen(ctx context.Context, change *Revision, tree string, most int) (bool, error) {
	tip := git.Want{Hash: change.Commit, Ref: change.Ref}
	return p.depot.client.SeenIn(ctx, p.settings.Fetch, p.seen(p.snapshot, tip, change.Package, tree, most))
}

// extend makes a commit on the branch, or on what is planned there already, which merges others.
func (p *plan) extend(ctx context.Context, edit git.Edit, message string, merged ...string) (string, error) {
	next := git.NewCommit{Base: p.head, Parents: merged, Edits: []git.Edit{edit}, Message: message}
	if p.head != "" {
		next.Parents = append([]string{p.head}, merged...)
	}
	if p.settings.Index && p.snapshot.isListed() {
		next.Edits = append(next.Edits, p.index())
	}
	commit, err := p.commit(ctx, next)
	if err != nil {
		return "", err
	}
	if len(merged) == 0 { // What a merge brings along is for the server to tell.
		key := grownKey{p.snapshot.known.remote, commit}
		p.depot.memory.put(key, p.head, int64(len(key.commit)+len(p.head)))
	}
	p.head = commit
	return commit, nil
}

// release is the published revision that a task is about.
func (p *plan) release(t *task, pkg *Package) (*Revision, error) {
	found := pkg.Newest()
	if t.Revision != "" {
		found = pkg.Release(t.Revision)
	}
	switch {
	case found == nil:
		return nil, ErrGone
	case t.Expect != "" && t.Expect != found.Commit:
		return nil, fmt.Errorf("%w: %s is at %s", ErrMoved, found.Name, found.Commit)
	}
	return found, nil
}

// flag is the branch that marks a revision, and where it is.
func (p *plan) flag(r *Revision) (ref, at string) {
	ref = p.ref(place{DeletionProposed, r.Package, r.Name})
	return ref, p.snapshot.Refs[ref].Hash
}

// mark plans that the branch which marks a revision comes, or goes. A commit on it says which variant asked for it.
func (p *plan) mark(ctx context.Context, t *task, pkg *Package, wanted bool) error {
	r, err := p.release(t, pkg)
	if err != nil {
		return err
	}
	result := Result{Commit: r.Commit, Tree: r.Tree, Number: r.Number}
	switch ref, at := p.flag(r); {
	case wanted == (at != ""):
		t.settle(result)
	case wanted && t.Message.Variant == "":
		t.push(result, git.Update{Ref: ref, New: r.Commit})
	case wanted:
		if _, err := p.base(r.Commit); err != nil {
			return err
		}
		message := t.Message.text("Propose the deletion of "+t.Package, trailer{packageTrailer, p.path(t.Package)})
		mark, err := p.commit(ctx, git.NewCommit{Base: r.Commit, Parents: []string{r.Commit}, Message: message})
		if err != nil {
			return err
		}
		t.push(result, git.Update{Ref: ref, New: mark})
	default:
		t.push(result, git.Update{Ref: ref, Old: at})
	}
	return nil
}

// remove plans a commit on the branch that takes the package away.
func (p *plan) remove(ctx context.Context, t *task, pkg *Package) error {
	r, err := p.release(t, pkg)
	if err != nil {
		return err
	}
	if r != pkg.Newest() {
		return fmt.Errorf("%w: %s is not the newest revision", ErrOutOfDate, r.Name)
	}
	now, err := p.treeAt(ctx, p.head, t.Package)
	if err != nil {
		return err
	}
	var updates []git.Update
	if ref, at := p.flag(r); at != "" {
		updates = append(updates, git.Update{Ref: ref, Old: at})
	}
	result := Result{Commit: p.snapshot.Head, Number: r.Number}
	switch {
	case now == "" && len(updates) == 0:
		t.settle(result)
		return nil
	case now == "":
		t.push(result, updates...)
		return nil
	case now != r.Tree:
		return fmt.Errorf("%w: the branch has tree %s, not that of %s", ErrOutOfDate, now, r.Name)
	}
	message := t.Message.text(fmt.Sprintf("Remove %s", t.Package), trailer{packageTrailer, p.path(t.Package)}, trailer{removedTrailer, r.Name})
	p.gone[t.Package] = true
	if result.Commit, err = p.extend(ctx, git.Edit{Path: p.path(t.Package), Keep: p.snapshot.inner(t.Package)}, message); err != nil {
		p.gone[t.Package] = false
		return err
	}
	t.onBranch = true
	t.push(result, updates...)
	return nil
}
