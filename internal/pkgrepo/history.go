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
	if err := w.learnOrigins(ctx, s, old); err != nil {
		return nil, err
	}
	var found []Leftover
	for _, one := range old {
		at, ok := recall[origins](w.depot.memory, originKey{s.known.remote, one.Commit})
		if ok && at.pkg == w.path(one.Package) && at.revision == one.Name && len(found) < MaxLeftovers {
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

// origins is what a commit on the branch says that it published; nothing for one that is not there.
type origins struct{ pkg, revision string }

// originKey is what the memory knows them by.
type originKey struct{ remote, commit string }

// maxOrigins is how many commits of the branch are looked at to find out what they published.
const maxOrigins = 1 << 12

// learnOrigins finds out what the commits of revisions published, and remembers it: a tag that is not to go costs nothing more.
func (w work) learnOrigins(ctx context.Context, s *Snapshot, of []*Revision) error {
	sought := map[string]bool{}
	for _, one := range of {
		if _, ok := recall[origins](w.depot.memory, originKey{s.known.remote, one.Commit}); !ok {
			sought[one.Commit] = true
		}
	}
	learn := func(commit string, is origins) {
		delete(sought, commit)
		w.depot.memory.put(originKey{s.known.remote, commit}, is, int64(len(commit)+len(is.pkg)+len(is.revision)))
	}
	if len(sought) == 0 || s.Head == "" {
		return nil
	}
	tip := git.Want{Hash: s.Head, Ref: w.branch}
	err := w.depot.client.Log(ctx, w.settings.Fetch, tip, maxOrigins, func(c git.Logged) bool {
		if sought[c.Hash] {
			n := parseNote(c.Message)
			learn(c.Hash, origins{strings.Clone(n.pkg), strings.Clone(n.revision)})
		}
		return len(sought) > 0
	})
	if err != nil {
		return err
	}
	for commit := range sought {
		learn(commit, origins{})
	}
	return nil
}
