package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sluice.dev/sluice/internal/git"
)

// explorer finds out what is in the commits of a snapshot.
type explorer struct {
	work

	snapshot *Snapshot
	// last says that what is not to be had is not waited for any more.
	last bool
	// passing are errors about commits that may be gone at the next look.
	passing map[string]error
	// fetches are those that are left to find out which commits are bad.
	fetches int
	// parents are those of the head of the branch, if it was read in this look.
	parents []string
	// withouts are the digests of the packages below others, of those that were asked for.
	withouts map[string]string
}

// explore reads what is not known yet, and then tells every revision what is.
func (e *explorer) explore(ctx context.Context) error {
	e.withouts = map[string]string{}
	if err := e.stand(ctx); err != nil {
		return err
	}
	e.withouts = map[string]string{}
	gaps := e.unknown()
	if e.isOver() { // The packages on the branch come first, so that the branch has to be known.
		if err := e.fetchHead(ctx); err != nil {
			return err
		}
		e.bound()
		gaps = e.unknown()
	}
	if err := e.fetch(ctx, gaps); err != nil {
		return err
	}
	if e.nameKept() {
		if err := e.fetch(ctx, e.unknown()); err != nil {
			return err
		}
	}
	e.branch()
	e.snapshot.elsewhere = nil
	for _, name := range e.snapshot.paths() {
		pkg := e.snapshot.Packages[name]
		for _, all := range [][]Revision{pkg.Open, pkg.newest()} {
			for i := range all {
				e.tell(&all[i])
			}
		}
		pkg.nameBranch()
	}
	return nil
}

// gap is a commit of which something is not known, and what.
type gap struct {
	want  git.Want
	paths []string
	// folders says that the packages in it are to be found: it is the branch's.
	folders bool
}

// unknown are the commits that have to be read. The branch's is the first, if it is one of them.
func (e *explorer) unknown() []*gap {
	s := e.snapshot
	var gaps []*gap
	byCommit := map[string]*gap{}
	at := func(commit, ref string) *gap {
		g := byCommit[commit]
		if g == nil {
			g = &gap{want: git.Want{Hash: commit, Ref: ref}}
			byCommit[commit] = g
			gaps = append(gaps, g)
		}
		return g
	}
	if s.Head != "" && !e.branchIsKnown() {
		at(s.Head, e.layout.branch).folders = true
	}
	for _, pkg := range e.unnamed() {
		if path := e.path(pkg); !e.isKnown(s.Head, path) {
			g := at(s.Head, e.layout.branch)
			g.paths = append(g.paths, path)
		}
	}
	for _, name := range s.paths() {
		pkg, path := s.Packages[name], e.path(name)
		if s.Head != "" && !e.isKnown(s.Head, path) {
			g := at(s.Head, e.layout.branch)
			g.paths = append(g.paths, path)
		}
		for _, want := range e.commits(pkg) {
			if !e.isKnown(want.Hash, path) {
				g := at(want.Hash, want.Ref)
				g.paths = append(g.paths, path)
			}
		}
	}
	return gaps
}

// commits are those of a package of which more is wanted than the name: of open changes, of the newest revisions, and of the branches
// that propose the deletion of these.
func (e *explorer) commits(pkg *Package) (wants []git.Want) {
	for _, all := range [][]Revision{pkg.Open, pkg.newest()} {
		for _, r := range all {
			wants = append(wants, git.Want{Hash: r.Commit, Ref: r.Ref})
			if r.Mark != "" {
				wants = append(wants, git.Want{Hash: r.Mark, Ref: e.ref(place{DeletionProposed, r.Package, r.Name})})
			}
		}
	}
	return wants
}

// isKnown tells whether a package's tree in a commit, and the facts of that, are known.
func (e *explorer) isKnown(commit, path string) bool {
	d, ok := e.snapshot.known.detail(e.spot(commit, path))
	if !ok || d.err != nil {
		return ok
	}
	_, ok = e.snapshot.known.factsOf(d.tree)
	return ok
}

// branchIsKnown tells whether the packages on the branch, and the facts of each, are known.
func (e *explorer) branchIsKnown() bool {
	found, ok := e.snapshot.known.folders(e.snapshot.Head)
	for _, f := range found.outermost {
		if !ok {
			break
		}
		ok = e.isKnown(e.snapshot.Head, f.Dir)
	}
	return ok
}

// tell tells a revision what is known of it.
func (e *explorer) tell(r *Revision) {
	known := e.snapshot.known
	d, ok := known.detail(e.spot(r.Commit, e.path(r.Package)))
	if !ok {
		r.Err = e.passing[r.Commit]
		return
	}
	r.Tree, r.Err, r.IsOwn = d.tree, d.err, d.isOwn
	if m, ok := known.detail(e.spot(r.Mark, e.path(r.Package))); ok && r.Mark != r.Commit {
		r.Proposer = Proposer{m.note.variant, m.note.uid}
	}
	if r.Name != "" && d.note.pkg == e.path(r.Package) {
		// Anybody may have written the message.
		if r.Source = d.note.change; CheckWorkspace(d.note.workspace) == nil {
			r.Workspace = d.note.workspace
		}
	}
	if r.Tree == "" {
		return
	}
	l, ok := known.use(r.Tree)
	if r.Facts, r.Err = l.facts, l.err; !ok {
		r.Err = e.passing[r.Commit]
	}
}

// branch adds what is on the branch: the outermost packages, and all that refs name.
func (e *explorer) branch() {
	s := e.snapshot
	if s.Head == "" {
		e.bound()
		return
	}
	found, _ := s.known.folders(s.Head)
	for _, name := range found.ignored {
		s.report(Unsafe, name)
	}
	for _, path := range found.beyond {
		s.leaveOut(path, "package "+shown(path), fmt.Sprintf("the branch has more than %d packages", e.depot.options.MaxPackages))
	}
	for _, f := range found.outermost {
		if pkg, ok := e.below(f.Dir); ok {
			s.at(pkg)
		}
	}
	e.bound()
	for _, name := range s.paths() {
		pkg := s.Packages[name]
		r := Revision{Package: pkg.Path, Ref: e.layout.branch, Commit: s.Head}
		if e.tell(&r); !errors.Is(r.Err, fs.ErrNotExist) || r.Tree != "" {
			pkg.Branch = &r
		}
	}
}

// nameBranch names what is on the branch after the newest published revision of the same tree.
func (p *Package) nameBranch() {
	if p.Branch == nil || p.Branch.Tree == "" {
		return
	}
	if found := first(p.newest(), func(r *Revision) bool { return r.Tree == p.Branch.Tree }); found != nil {
		p.Branch.Number, p.Branch.Name = found.Number, found.Name
	}
}
