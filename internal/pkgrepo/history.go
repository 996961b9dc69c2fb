package pkgrepo

import (
	"context"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
)

// History says what is kept of what was published. The zero one keeps everything.
type History struct {
	// Revisions is how many published revisions of a package keep their tags at least, the newest ones; zero for all. Less than
	// Detailed counts as that: of those that are shown, none is let go of.
	Revisions int
	// Needed tells whether somebody needs the tag, or the commit that it leads to.
	Needed func(tag, commit string) bool
}

// Leftover is a branch or tag that nobody needs any more.
type Leftover struct {
	// Ref is its full name, and Commit where it is.
	Ref, Commit string
}

// MaxLeftovers bounds how many are named, and removed, at once.
const MaxLeftovers = 100

// Leftovers are the tags that the history lets go of, in the order of their names. It is decided on the last snapshot: whoever
// removes them does so only where they are as they were seen.
//
// What is removed can be made again: a tag is one of them only if its commit is among the newest 4,096 of the branch, and says
// itself that it published the package under this name. So no tag goes that somebody has moved or made by hand, and none whose
// commit would be lost with it.
func (r *Repository) Leftovers(ctx context.Context, h History) ([]Leftover, error) {
	w, err := r.work()
	s := r.Snapshot()
	if err != nil || s == nil || h.Revisions <= 0 {
		return nil, err
	}
	old := w.outdated(s, h)
	published, err := w.published(ctx, s, old)
	if err != nil {
		return nil, err
	}
	var found []Leftover
	for _, one := range old {
		if published[origins{one.Commit, w.path(one.Package), one.Name}] && len(found) < MaxLeftovers {
			found = append(found, Leftover{one.Ref, one.Commit})
		}
	}
	return found, nil
}

// outdated are the revisions that the history would let go of, by the name of their tags.
func (w work) outdated(s *Snapshot, h History) []*Revision {
	var old []*Revision
	for _, pkg := range s.Packages {
		for i := max(h.Revisions, Detailed); i < len(pkg.Published); i++ {
			one := &pkg.Published[i]
			isPlain := s.Refs[one.Ref].Hash == one.Commit // Tags with a message are people's.
			tag := strings.TrimPrefix(one.Ref, tagsPrefix)
			if one.Number > 0 && one.Lifecycle == Published && isPlain && !w.isRefused(Leftover{one.Ref, one.Commit}) && !h.Needed(tag, one.Commit) {
				old = append(old, one)
			}
		}
	}
	slices.SortFunc(old, func(a, b *Revision) int { return strings.Compare(a.Ref, b.Ref) })
	return old
}

// origins is what a commit on the branch says that it published.
type origins struct{ commit, pkg, revision string }

// staysKey is what the memory knows a tag by whose commit did not publish it, or is not on the branch.
type staysKey struct {
	remote string
	origins
}

// maxOrigins is how many commits of the branch are looked at to find out what they published.
const maxOrigins = 1 << 12

// published are those of the revisions that their commits on the branch say that they published. Of the others it is remembered that they
// stay, so that they cost nothing more; of these nothing is, as a branch that is rewritten has their commits no more.
func (w work) published(ctx context.Context, s *Snapshot, of []*Revision) (map[origins]bool, error) {
	sought, found := map[origins]bool{}, map[origins]bool{}
	commits := map[string]bool{}
	for _, one := range of {
		is := origins{one.Commit, w.path(one.Package), one.Name}
		if _, stays := recall[bool](w.depot.memory, staysKey{s.known.remote, is}); !stays {
			sought[is], commits[one.Commit] = true, true
		}
	}
	if len(sought) == 0 || s.Head == "" {
		return nil, nil
	}
	tip := git.Want{Hash: s.Head, Ref: w.branch}
	err := w.depot.client.Log(ctx, w.settings.Fetch, tip, maxOrigins, func(c git.Logged) bool {
		if commits[c.Hash] {
			n := parseNote(c.Message)
			found[origins{c.Hash, n.pkg, n.revision}] = true
			delete(commits, c.Hash)
		}
		return len(commits) > 0
	})
	if err != nil {
		return nil, err
	}
	for is := range sought {
		if !found[is] {
			w.depot.memory.put(staysKey{s.known.remote, is}, true, int64(len(is.commit)+len(is.pkg)+len(is.revision)))
		}
	}
	return found, nil
}
