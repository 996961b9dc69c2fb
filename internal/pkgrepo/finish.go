package pkgrepo

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/git"
)

// finish completes what a crash has interrupted, which happens on servers without atomic pushes alone. The snapshot is the one
// after that.
//
// What is left of a publication is the open change, which goes last. Either a revision of the same tree was published from its
// tip, and it has only to go; or the branch has its tree, and a commit whose trailers name its tip: then the tag is missing as
// well. What is left of a step from draft to proposed, or back, are both: it stays proposed, and who wants it back asks again.
func (w work) finish(ctx context.Context, s *Snapshot) (*Snapshot, error) {
	if w.settings.Push.URL == "" {
		return s, nil
	}
	tags, removals, err := w.unfinished(ctx, s)
	for _, updates := range [][]git.Update{tags, removals} {
		if err == nil && len(updates) > 0 {
			err = w.complete(ctx, updates)
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err == nil && len(tags)+len(removals) > 0:
		return w.look(ctx)
	}
	// The snapshot is good for all that. The next look tries again.
	s.Unfinished, s.partial = err, s.partial || err != nil
	return s, nil
}

// complete moves refs, each by itself.
func (w work) complete(ctx context.Context, updates []git.Update) error {
	results, err := w.depot.client.Push(ctx, w.settings.Push, git.PushRequest{Updates: updates, For: w.settings.Fetch})
	for _, result := range results {
		err = cmp.Or(err, result.Err)
	}
	return err
}

// unfinished are the tags that are missing, and the open changes that are left behind.
func (w work) unfinished(ctx context.Context, s *Snapshot) (tags, removals []git.Update, err error) {
	missing := map[origin]*Revision{}
	for _, pkg := range s.Packages {
		for i := range pkg.Open {
			r := &pkg.Open[i]
			switch done, proposed := pkg.publishedFrom(r.Commit), pkg.open(r.Workspace, Proposed); {
			case done != nil && done.Tree == r.Tree && done.Workspace == r.Workspace, r.Lifecycle == Draft && proposed != nil && proposed.Commit == r.Commit:
				removals = append(removals, git.Update{Ref: r.Ref, Old: r.Commit})
			case r.Tree != "" && pkg.Branch != nil && pkg.Branch.Tree == r.Tree:
				missing[origin{r.Commit, r.Workspace}] = r
			}
		}
	}
	if len(missing) == 0 {
		return nil, removals, nil
	}
	found, err := w.publications(ctx, s, missing)
	if err != nil {
		return nil, nil, err
	}
	numbers := map[string]int{}
	for _, p := range found {
		pkg := s.Packages[p.change.Package]
		number := max(pkg.Next(), numbers[pkg.Path]+1)
		numbers[pkg.Path] = number
		tags = append(tags, git.Update{Ref: w.ref(place{Published, pkg.Path, numbered(number)}), New: p.commit})
		removals = append(removals, git.Update{Ref: p.change.Ref, Old: p.change.Commit})
	}
	return tags, removals, nil
}

// origin is what a publication names: the tip of the open change, and its workspace. People may have branches of other names at
// the same commit.
type origin struct{ tip, workspace string }

// publication is a commit on the branch that published an open change.
type publication struct {
	commit string
	change *Revision
}

// publications finds the commits on the branch that published open changes, the first ones first. How far it has looked in vain is
// remembered, so that a change that is merely the same as the branch costs nothing more.
func (w work) publications(ctx context.Context, s *Snapshot, missing map[origin]*Revision) ([]publication, error) {
	var found []publication
	looked := map[string][]origin{} // by the commit down to which they were sought
	for of := range missing {
		at, _ := recall[string](w.depot.memory, lookedKey{s.known.remote, of.tip})
		looked[at] = append(looked[at], of)
	}
	sought := maps.Clone(missing)
	visit := func(c git.Logged) bool {
		for _, of := range looked[c.Hash] {
			delete(sought, of)
		}
		n := parseNote(c.Message)
		of := origin{n.change, n.workspace}
		if change := sought[of]; change != nil && n.revision != "" && n.pkg == w.path(change.Package) {
			found = append(found, publication{c.Hash, change})
			delete(sought, of)
		}
		return len(sought) > 0
	}
	tip := git.Want{Hash: s.Head, Ref: w.branch}
	if err := w.depot.client.Log(ctx, w.settings.Fetch, tip, w.depot.options.MaxWalk, visit); err != nil {
		return nil, err
	}
	for _, p := range found {
		delete(missing, origin{p.change.Commit, p.change.Workspace})
	}
	for of := range missing {
		w.depot.memory.put(lookedKey{s.known.remote, of.tip}, s.Head, int64(len(of.tip)+len(s.Head)))
	}
	slices.Reverse(found)
	return found, nil
}

// lookedKey is an open change that was sought on the branch.
type lookedKey struct{ remote, tip string }
