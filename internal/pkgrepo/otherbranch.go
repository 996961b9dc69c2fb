package pkgrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
)

// isOfBranch returns ErrOtherBranch for an open change whose history has the commit of another branch's tag. The publication is a merge, so
// it would make that tag a revision of this branch without an approval.
func (p *plan) isOfBranch(ctx context.Context, change *Revision) error {
	var tags []git.Want
	for _, name := range slices.Sorted(maps.Keys(p.snapshot.Refs)) {
		if ref := p.snapshot.Refs[name]; p.snapshot.known.standing.beside[ref.Target()] && strings.HasPrefix(name, tagsPrefix) {
			tags = append(tags, wantOf(ref))
		}
	}
	if change.IsOwn || len(tags) == 0 {
		return nil
	}
	beside, err := p.depot.client.Beside(ctx, p.settings.Fetch, git.Want{Hash: change.Commit, Ref: change.Ref}, tags)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if !beside[tag.Hash] {
			return fmt.Errorf("%w: its history has commit %.12s of %s, which is not on %s; publish the change in the Repository of its branch, or rebase it",
				ErrOtherBranch, tag.Hash, refName(tag.Ref), refName(p.branch))
		}
	}
	return nil
}

// wantOf is the commit that a tag leads to.
func wantOf(ref git.Ref) git.Want {
	want := git.Want{Hash: ref.Target(), Ref: ref.Name}
	if ref.Hash != want.Hash {
		want.Tag = ref.Hash
	}
	return want
}
