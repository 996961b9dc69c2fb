package pkgrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
)

// plan is what one push is to do: commits on top of what a snapshot has, and updates of refs.
type plan struct {
	work

	snapshot *Snapshot
	objects  *git.Objects
	// share is the time for making packages.
	share   *share
	commits map[string]*git.Commit
	// head is the tip of the publications that are planned so far.
	head string
	// workspaces are those that were chosen for new drafts.
	workspaces map[place]bool
	// numbers are the highest that packages get.
	numbers map[string]int
	// tags are the names of the revisions that packages get, in order, and gone those that leave the branch.
	tags map[string][]string
	gone map[string]bool
}

// open opens what tasks build upon. The caller closes it.
func (w work) open(ctx context.Context, s *Snapshot, tasks []*task) (*plan, error) {
	p := &plan{
		work: w, snapshot: s, commits: map[string]*git.Commit{}, head: s.Head, workspaces: map[place]bool{}, numbers: map[string]int{},
		tags: map[string][]string{}, gone: map[string]bool{},
	}
	var wants []git.Want
	seen := map[string]bool{"": true}
	want := func(commit, ref string) {
		if !seen[commit] {
			seen[commit] = true
			wants = append(wants, git.Want{Hash: commit, Ref: ref})
		}
	}
	want(s.Head, w.branch)
	for _, t := range tasks {
		for _, r := range p.foundations(t) {
			want(r.Commit, r.Ref)
		}
	}
	if len(wants) == 0 {
		p.objects = w.depot.client.Compose(ctx)
		return p, nil
	}
	commits, err := w.depot.client.FetchAll(ctx, w.settings.Fetch, wants)
	if err != nil {
		return nil, err
	}
	var bases []*git.Commit
	for _, commit := range commits {
		if commit != nil {
			p.commits[commit.Hash] = commit
			bases = append(bases, commit)
		}
	}
	p.objects = w.depot.client.Compose(ctx, bases...)
	return p, nil
}

// foundations are the open changes and the revision that a task builds upon.
func (p *plan) foundations(t *task) (found []*Revision) {
	pkg := p.snapshot.Package(t.Package)
	if r, err := p.release(t, pkg); err == nil && t.Kind == ProposeDeletion && t.Message.Variant != "" {
		return []*Revision{r}
	}
	if pkg == nil || t.isOfRelease() {
		return nil
	}
	for i := range pkg.Open {
		if r := &pkg.Open[i]; r.Workspace == t.workspace && r.Tree != "" {
			found = append(found, r)
		}
	}
	return found
}

func (p *plan) close() error {
	err := p.objects.Close()
	for _, commit := range p.commits {
		err = errors.Join(err, commit.Close())
	}
	return err
}

// add plans a task. The error is of the plan as a whole.
func (p *plan) add(ctx context.Context, t *task) error {
	t.updates, t.onBranch, t.lost = nil, false, nil
	pkg := p.snapshot.Package(t.Package)
	err := cmp.Or(p.snapshot.CheckKnown(t.Package), p.isFree(t))
	if err != nil && t.Kind != Prune {
		t.fail(err)
		return nil
	}
	switch t.Kind {
	case Write:
		err = p.write(ctx, t, pkg)
	case Preview:
		err = p.preview(ctx, t, pkg)
	case Propose:
		err = p.propose(ctx, t, pkg)
	case Reject:
		err = p.move(t, pkg, Proposed, Draft)
	case Drop:
		err = p.drop(t, pkg)
	case Publish:
		err = p.publish(ctx, t, pkg)
	case Record:
		err = p.record(ctx, t, pkg)
	case ProposeDeletion:
		err = p.mark(ctx, t, pkg, true)
	case RejectDeletion:
		err = p.mark(ctx, t, pkg, false)
	case Remove:
		err = p.remove(ctx, t, pkg)
	case Prune:
		return nil // It is no part of a plan: see pruning.
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errBaseGone):
		t.lost = err
	default:
		t.fail(err)
	}
	return nil
}

// errBaseGone says that a commit that is to be built upon has gone since the look.
var errBaseGone = fmt.Errorf("%w: its commit is gone", git.ErrRefMoved)

// base is the commit of that id.
func (p *plan) base(commit string) (*git.Commit, error) {
	found := p.commits[commit]
	if found == nil {
		return nil, errBaseGone
	}
	return found, nil
}

// treeAt is the package's tree in a commit; empty where there is none.
func (p *plan) treeAt(ctx context.Context, commit, pkg string) (string, error) {
	if commit == "" {
		return "", nil
	}
	id, err := p.objects.TreeAt(ctx, commit, p.path(pkg), p.snapshot.inner(pkg)...)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return id, err
}

// commit makes a commit, of the files of its base. Its author and committer are those of the settings.
func (p *plan) commit(ctx context.Context, made git.NewCommit) (string, error) {
	now := p.depot.options.Clock.Now().UTC()
	author, committer := p.settings.Author, p.settings.Committer
	if committer == (Person{}) {
		committer = author
	}
	made.Signer = p.settings.Signer
	made.Author = git.Identity{Name: author.Name, Email: author.Email, When: now}
	made.Committer = git.Identity{Name: committer.Name, Email: committer.Email, When: now}
	return p.objects.Commit(ctx, made)
}

// remember keeps what is known of a commit that was made here, so that nobody has to look.
func (p *plan) remember(commit, pkg string, d detail) {
	at := p.spot(p.snapshot, commit, pkg)
	p.depot.memory.put(detailKey{p.snapshot.known.remote, at}, d, d.weight(at))
}

// rememberFacts reads the Kptfile of what was made.
func (p *plan) rememberFacts(tree string, made kpt.Package) {
	text := made[kpt.KptfileName]
	if text.Mode.IsRegular() && int64(len(text.Content)) <= p.depot.options.MaxKptfileBytes {
		if l := factsIn(text.Content); l.err == nil {
			p.depot.memory.put(factsKey{p.snapshot.known.remote, tree}, l, l.weight)
		}
	}
}
