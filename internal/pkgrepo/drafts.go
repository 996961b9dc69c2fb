package pkgrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
)

// write plans a commit on a draft.
func (p *plan) write(ctx context.Context, t *task, pkg *Package) error {
	draft, err := p.draft(ctx, t, pkg)
	if err != nil {
		return err
	}
	if draft != nil && t.hasTried(draft.Commit) {
		t.settle(Result{Commit: draft.Commit, Tree: draft.Tree, Workspace: t.workspace, Changed: true})
		return nil // The answer to the push was lost.
	}
	if err := expect(t, draft); err != nil {
		return err
	}
	return p.make(ctx, t, draft, func(on string, made Made) error {
		if made.Unchanged {
			t.settle(before(draft, t.workspace))
			return nil
		}
		return p.put(ctx, t, on, draft, made)
	})
}

// preview makes what a write would put into the package.
func (p *plan) preview(ctx context.Context, t *task, pkg *Package) error {
	change := pkg.Find(t.workspace)
	if err := expect(t, change); err != nil {
		return err
	}
	return p.make(ctx, t, change, func(string, Made) error {
		t.settle(before(change, t.workspace))
		return nil
	})
}

// make has the task make something of the open change or, without one, of what is on the branch, and has it used: on is the
// commit that has it.
func (p *plan) make(ctx context.Context, t *task, change *Revision, use func(on string, made Made) error) (err error) {
	now, on := Current{Open: change, Workspace: t.workspace}, p.snapshot.Head
	if change != nil {
		on = change.Commit
	} else if err = p.clear(ctx, t.Package); err != nil {
		return err
	}
	if now.Branch, err = p.onBranch(ctx, t.Package); err != nil {
		return err
	}
	if now.Open, err = p.begun(ctx, change, now.Branch); err != nil {
		return err
	}
	local, drawn, err := p.local(ctx, on, now, t.Package)
	defer memory.Return(ctx, drawn)
	if err != nil {
		return err
	}
	now.Local = local
	made, err := p.makes(ctx, t, now)
	if err != nil {
		return err
	}
	return use(on, made)
}

// begun is the open change with what it was begun on, where its Kptfile does not say and its history says that it is what the branch
// has: another program began it.
func (p *plan) begun(ctx context.Context, change, branch *Revision) (*Revision, error) {
	if change != nil && branch != nil && change.Facts.Base == "" {
		isBegun, err := p.isBegunOn(ctx, change, branch.Tree)
		if err != nil {
			return nil, err
		}
		if isBegun {
			told := *change
			told.Facts.Base, change = branch.Tree, &told
		}
	}
	return change, nil
}

// draft is what is written to; nil for a new one, whose workspace is chosen where the task names none.
func (p *plan) draft(ctx context.Context, t *task, pkg *Package) (*Revision, error) {
	draft := pkg.open(t.workspace, Draft)
	if t.Workspace == "" && t.workspace != "" && draft != nil {
		if ours, err := p.isOurs(ctx, t, draft); ours || err != nil {
			return draft, err
		}
	}
	if t.Workspace == "" && (t.workspace == "" || pkg.Find(t.workspace) != nil) {
		t.workspace = p.nextWorkspace(t.Package, pkg)
		return nil, nil
	}
	if pkg.open(t.workspace, Proposed) != nil {
		return nil, ErrProposed
	}
	return draft, nil
}

// before is the result of a write that changes nothing.
func before(draft *Revision, workspace string) Result {
	if draft == nil {
		return Result{}
	}
	return Result{Commit: draft.Commit, Tree: draft.Tree, Workspace: workspace}
}

// expect compares an open change with what the task is bound to.
func expect(t *task, found *Revision) error {
	switch {
	case t.Expect == "":
		return nil
	case found == nil:
		return ErrGone
	case found.Commit != t.Expect:
		return fmt.Errorf("%w: %s is at %s", ErrMoved, shown(t.workspace), found.Commit)
	}
	return nil
}

// onBranch is what is on the branch. A folder that no package is known of counts: whoever writes there has to know.
func (p *plan) onBranch(ctx context.Context, path string) (*Revision, error) {
	if pkg := p.snapshot.Package(path); pkg != nil {
		return pkg.Branch, nil
	}
	tree, err := p.treeAt(ctx, p.snapshot.Head, path)
	if tree == "" || err != nil {
		return nil, err
	}
	missing := fmt.Errorf("there is no %s in %s: %w", kpt.KptfileName, shown(p.path(path)), fs.ErrNotExist)
	return &Revision{Package: path, Ref: p.branch, Commit: p.snapshot.Head, Tree: tree, Err: missing}, nil
}

// clear tells whether no file is in the way of a package, and none of its files belongs to another one.
func (p *plan) clear(ctx context.Context, path string) error {
	if p.snapshot.Head == "" {
		return nil
	}
	head, err := p.base(p.snapshot.Head)
	if err != nil {
		return err
	}
	whole := p.path(path)
	for at, r := range whole + "/" {
		if r != '/' {
			continue
		}
		info, err := head.Tree().Lstat(whole[:at])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p.unclaimed(ctx, path)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%w: a file is at %s", ErrExists, shown(whole[:at]))
		}
	}
	return p.unclaimed(ctx, path)
}

// local is what a write finds in the draft, or on the branch.
func (p *plan) local(ctx context.Context, on string, now Current, pkg string) (found kpt.Package, drawn int64, err error) {
	from := now.Open
	if from == nil {
		from = now.Branch
	}
	if from == nil {
		return nil, 0, nil
	}
	commit, err := p.base(on)
	if err != nil {
		return nil, 0, err
	}
	return p.readFrom(ctx, commit, pkg, p.snapshot.inner(pkg))
}

// put makes the commit of a write.
func (p *plan) put(ctx context.Context, t *task, on string, draft *Revision, made Made) error {
	if len(made.Package) == 0 {
		return fmt.Errorf("package %s: nothing is in it", shown(t.Package))
	}
	if on != "" {
		if _, err := p.base(on); err != nil {
			return err
		}
	}
	if err := p.separate(t.Package, on, made.Package); err != nil {
		return err
	}
	edit := git.Edit{Path: p.path(t.Package), Keep: p.snapshot.inner(t.Package)}
	for _, name := range made.Package.Paths() {
		file := made.Package[name]
		edit.Files = append(edit.Files, git.File{Path: name, Mode: file.Mode, Content: file.Content})
	}
	parents, err := p.under(ctx, t, on, draft)
	if err != nil {
		return err
	}
	message := made.Message.text("Change "+t.Package, trailer{packageTrailer, p.path(t.Package)}, trailer{workspaceTrailer, t.workspace})
	next := git.NewCommit{Edits: []git.Edit{edit}, Message: message, Parents: parents}
	if len(next.Parents) > 0 {
		next.Base = next.Parents[0]
	}
	isOwn := draft == nil || draft.IsOwn
	if isOwn {
		next.TreeTrailer = treeTrailer
	}
	commit, err := p.commit(ctx, next)
	if err != nil {
		return err
	}
	id, err := p.treeAt(ctx, commit, t.Package)
	if err != nil {
		return err
	}
	old := ""
	if draft != nil {
		if old = draft.Commit; draft.Tree == id {
			t.settle(before(draft, t.workspace))
			return nil
		}
	}
	p.remember(commit, t.Package, detail{tree: id, isOwn: isOwn, note: note{pkg: edit.Path, pristine: made.Message.Pristine}})
	p.rememberFacts(id, made.Package)
	t.push(Result{Commit: commit, Tree: id, Workspace: t.workspace}, git.Update{
		Ref: p.ref(place{Draft, t.Package, t.workspace}), Old: old, New: commit,
	})
	return nil
}

// under are the commits that one on a draft stands on. What has come to the package on the branch since the draft was begun is part
// of what is written: the history says so as well, for others could not merge the draft otherwise. Then the branch comes first, whose
// files are those beside the package. It is ErrOutside where the draft has other ones: they would be gone from it, and merged for Git.
func (p *plan) under(ctx context.Context, t *task, on string, draft *Revision) ([]string, error) {
	if on == "" {
		return nil, nil
	}
	head := p.snapshot.Head
	if draft == nil || draft.Facts.Base == "" || p.commits[head] == nil {
		return []string{on}, nil
	}
	now := kpt.BaseNone
	if pkg := p.snapshot.Package(t.Package); pkg != nil && pkg.Branch != nil {
		now = pkg.Branch.Tree
	}
	if now == draft.Facts.Base {
		return []string{on}, nil
	}
	return []string{head, on}, p.isInside(ctx, draft)
}

// nextWorkspace is one that neither the repository nor another task has.
func (p *plan) nextWorkspace(path string, pkg *Package) string {
	pkg = cmp.Or(pkg, &Package{Path: path})
	name := pkg.NextWorkspace()
	for number := workspaceNumber(name); p.workspaces[place{Draft, path, name}]; number++ {
		name = VariantWorkspace + numbered(number)[1:]
	}
	p.workspaces[place{Draft, path, name}] = true
	return name
}

// isOurs tells whether a draft is one that an earlier try has begun, with somebody's commits on top of it by now.
func (p *plan) isOurs(ctx context.Context, t *task, draft *Revision) (bool, error) {
	for _, tried := range t.tried {
		if tried.Workspace != t.workspace {
			continue
		}
		if seen, err := p.hasSeen(ctx, draft, tried.Tree, p.depot.options.MaxWalk); seen || err != nil {
			return seen, err
		}
	}
	return false, nil
}

// move plans the step of an open change from one lifecycle to the other. The new branch comes first: a change is never without
// any.
func (p *plan) move(t *task, pkg *Package, from, to Lifecycle) error {
	here, there := pkg.open(t.workspace, from), pkg.open(t.workspace, to)
	if here == nil {
		if there == nil {
			return ErrGone
		}
		if err := expect(t, there); err != nil {
			return err
		}
		t.settle(Result{Commit: there.Commit, Tree: there.Tree, Workspace: t.workspace})
		return nil
	}
	if err := expect(t, here); err != nil {
		return err
	}
	if there != nil && there.Commit != here.Commit {
		return fmt.Errorf("%w: branch %s is at %s", ErrExists, shown(there.Ref), there.Commit)
	}
	var updates []git.Update
	if there == nil {
		updates = append(updates, git.Update{Ref: p.ref(place{to, t.Package, t.workspace}), New: here.Commit})
	}
	t.push(Result{Commit: here.Commit, Tree: here.Tree, Workspace: t.workspace},
		append(updates, git.Update{Ref: here.Ref, Old: here.Commit})...)
	return nil
}

// drop plans the removal of an open change, which it leaves alone where a commit on it is somebody else's and the change was not asked
// to discard that.
func (p *plan) drop(t *task, pkg *Package) error {
	var updates []git.Update
	var other *Revision
	for _, lifecycle := range []Lifecycle{Draft, Proposed} {
		r := pkg.open(t.workspace, lifecycle)
		switch {
		case r == nil:
		case t.Expect != "" && r.Commit != t.Expect:
			other = r
		case !r.IsOwn && !t.Discard:
			return fmt.Errorf("%w: branch %s", ErrNotOwn, shown(r.Ref))
		default:
			updates = append(updates, git.Update{Ref: r.Ref, Old: r.Commit})
		}
	}
	switch {
	case len(updates) > 0:
		t.push(Result{Workspace: t.workspace}, updates...)
	case other != nil:
		return expect(t, other)
	default:
		t.settle(Result{Workspace: t.workspace})
	}
	return nil
}
