package pkgrepo

import (
	"context"

	"sluice.dev/sluice/internal/git"
)

// TagID is the id of the annotated tag that a ref of the last snapshot is, where it leads to the commit; empty for all other refs.
func (r *Repository) TagID(ref, commit string) string {
	if s := r.Snapshot(); s != nil && s.Refs[ref].Peeled == commit {
		return s.Refs[ref].Hash
	}
	return ""
}

// Signed gives the objects that the signatures of a commit and of an annotated tag are in. The id of the tag may be empty for none.
func (r *Repository) Signed(ctx context.Context, commit, tag string) (git.Signed, error) {
	w, err := r.work()
	if err != nil {
		return git.Signed{}, err
	}
	return w.depot.client.Signed(ctx, w.settings.Fetch, git.Want{Hash: commit, Ref: r.refOf(commit, ""), Tag: tag})
}
