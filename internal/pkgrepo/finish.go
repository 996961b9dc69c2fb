package pkgrepo

import (
	"context"

	"sluice.dev/sluice/internal/git"
)

// finish completes publications that a crash has interrupted, which happens on servers without atomic pushes alone. The
// snapshot is the one after that.
//
// What is left of one is the open change, which goes last. Either a revision was published from its tip, and it has only to
// go; or the branch has its tree, and a commit whose trailers name its tip: then the tag is missing as well.
func (w work) finish(ctx context.Context, s *Snapshot) (*Snapshot, error) {
	if w.settings.Push.URL == "" {
		return s, nil
	}
	tags, removals, err := w.unfinished(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, updates := range [][]git.Update{tags, removals} {
		if len(updates) == 0 {
			continue
		}
		results, err := w.depot.client.Push(ctx, w.settings.Push, git.PushRequest{Updates: updates, For: w.settings.Fetch})
		if err != nil {
			s.Unfinished = err
			return s, nil //nolint:nilerr // It is told with the snapshot, which is good for all that.
		}
		for _, result := range results {
			if result.Err != nil {
				s.Unfinished = result.Err
				return s, nil
			}
		}
	}
	if len(tags)+len(removals) == 0 {
		return s, nil
	}
	return w.look(ctx)
}

// unfinished are the tags that are missing, and the open changes that are left behind.
func (w work) unfinished(ctx context.Context, s *Snapshot) (tags, removals []git.Update, err error) {
	missing := map[string]*Revision{}
	for _, pkg := range s.Packages {
		for i := range pkg.Open {
			r := &pkg.Open[i]
			switch {
			case pkg.publishedFrom(r.Commit) != nil:
				removals = append(removals, git.Update{Ref: r.Ref, Old: r.Commit})
			case r.Tree != "" && pkg.Branch != nil && pkg.Branch.Tree == r.Tree:
				missing[r.Commit] = r
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

// publication is a commit on the branch that published an open change.
type publication struct {
	commit string
	change *Revision
}
