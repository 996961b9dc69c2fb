package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/printable"
)

// standing records which commits of package tags are in the history of the branch. A tag's commit that is in neither map is in the history.
type standing struct {
	head string
	// beside are the commits that are not in the history of the head. unsure are the commits to ask about again, because the last
	// request failed.
	beside, unsure map[string]bool
}

// grownKey is a commit that this program made on the branch. Its value in the memory is its parent.
type grownKey struct{ remote, commit string }

// stand finds out which tags are revisions of the branch. All branches of a Git repository share its tags, so that another branch may
// have published the same package: a tag is a revision of this one only if its commit is in the branch's history.
//
// The history of a commit is part of the history of its descendants. So stand asks only about new tags. If others moved the branch, it also
// asks whether the branch still has its earlier head, and which tags have joined. This is one request, and none after a push of this
// program. If the server does not answer, the earlier result stays, and new tags are not revisions yet.
func (e *explorer) stand(ctx context.Context) error {
	s := e.snapshot
	tags := s.tagCommits()
	if len(tags) == 0 {
		return nil
	}
	was, shown := e.stood()
	c := &comparison{explorer: e, tags: tags, was: was, shown: shown, now: standing{head: s.Head, beside: map[string]bool{}, unsure: map[string]bool{}}}
	if c.grow(); !c.isGrown && was.head != "" && s.Head != "" {
		if err := e.fetchHead(ctx); err != nil { // It must be read in any case, and its parent may be the earlier head.
			return err
		}
		c.grow()
	}
	err := c.compare(ctx)
	switch {
	case errors.Is(err, git.ErrRefNotFound) && !e.last:
		return fmt.Errorf("%w: %w", errVanished, err)
	case err != nil && (ctx.Err() != nil || errors.Is(err, memory.ErrShortage)):
		return err
	case err != nil:
		c.hold(err)
	}
	s.known.standing, s.elsewhere, s.named = c.now, map[string]*Package{}, nil
	for path, pkg := range s.Packages {
		pkg.Published = slices.DeleteFunc(pkg.Published, func(r Revision) bool {
			if c.now.beside[r.Commit] {
				pkg.beside = append(pkg.beside, r.Commit)
			}
			return c.now.beside[r.Commit]
		})
		isHere := len(pkg.Open)+len(pkg.Published) > 0
		if isHere || slices.ContainsFunc(pkg.beside, func(commit string) bool { return c.now.unsure[commit] }) {
			s.named = append(s.named, path) // While it is not known, nothing of it becomes part of an outer package.
		}
		if !isHere {
			delete(s.Packages, path)
			s.elsewhere[path] = pkg
		}
	}
	slices.Sort(s.named)
	return nil
}

// tagCommits are the commits of all package tags, and the tag that leads to each.
func (s *Snapshot) tagCommits() map[string]git.Ref {
	commits := map[string]git.Ref{}
	for _, pkg := range s.Packages {
		for i := range pkg.Published {
			commits[pkg.Published[i].Commit] = s.Refs[pkg.Published[i].Ref]
		}
	}
	return commits
}

// stood returns the standing and the tag commits of the previous snapshot.
func (e *explorer) stood() (was standing, shown map[string]git.Ref) {
	before := e.Snapshot()
	if before == nil || before.known.remote != e.snapshot.known.remote {
		return standing{}, nil
	}
	return before.known.standing, before.tagCommits()
}

// comparison compares the tags of a snapshot with its branch.
type comparison struct {
	*explorer

	tags map[string]git.Ref
	was  standing
	// shown are the tag commits of the previous snapshot.
	shown map[string]git.Ref
	now   standing
	// own are the head and the commits below it that were made here, down to the earlier head if isGrown.
	own     map[string]bool
	isGrown bool
}

// fetchHead reads the head of the branch, if that is not known.
func (e *explorer) fetchHead(ctx context.Context) error {
	if gaps := e.unknown(); len(gaps) > 0 && gaps[0].folders {
		return e.fetch(ctx, gaps[:1])
	}
	return nil
}

// grow follows the commits that were made here from the head down to the earlier one. A head that others made on the earlier one, without a merge,
// also counts.
func (c *comparison) grow() {
	c.own = map[string]bool{}
	at := c.now.head
	if slices.Equal(c.parents, []string{c.was.head}) {
		c.own[at], at = true, c.was.head
	}
	for at != "" && at != c.was.head {
		c.own[at] = true
		parent, ok := recall[string](c.snapshot.known.memory, grownKey{c.snapshot.known.remote, at})
		if !ok {
			return
		}
		at = parent
	}
	c.isGrown = at == c.was.head
}

// compare asks about unknown commits, and records the answers.
func (c *comparison) compare(ctx context.Context) error {
	if c.now.head == "" {
		for commit := range c.tags {
			c.now.beside[commit] = true
		}
		return nil
	}
	wants, asksHead := c.unknown()
	beside, err := c.ask(ctx, wants, asksHead)
	if asksHead && (beside[c.was.head] || errors.Is(err, git.ErrRefNotFound)) {
		// The branch was set back, or rewritten: nothing that was known is any more.
		c.was, c.shown = standing{}, nil
		wants, _ = c.unknown()
		beside, err = c.ask(ctx, wants, false)
	}
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	for _, want := range wants {
		asked[want.Hash] = true
	}
	for commit := range c.tags {
		if asked[commit] && beside[commit] || !asked[commit] && !c.own[commit] && c.was.beside[commit] {
			c.now.beside[commit] = true
		}
	}
	return nil
}

// unknown are the tags to ask about, and whether it matters that the branch still has its earlier head.
func (c *comparison) unknown() (wants []git.Want, asksHead bool) {
	for _, commit := range slices.Sorted(maps.Keys(c.tags)) {
		_, isShown := c.shown[commit]
		isBeside := c.was.beside[commit]
		switch isKnown := (isShown || isBeside) && !c.was.unsure[commit]; {
		case c.own[commit], isKnown && c.isGrown:
		case isKnown && !isBeside:
			asksHead = true
		default:
			wants = append(wants, wantOf(c.tags[commit]))
		}
	}
	return wants, asksHead
}

// ask asks the server which commits are not in the branch's history.
func (c *comparison) ask(ctx context.Context, wants []git.Want, asksHead bool) (map[string]bool, error) {
	if asksHead {
		wants = append(slices.Clone(wants), git.Want{Hash: c.was.head})
	}
	if len(wants) == 0 {
		return nil, nil
	}
	return c.depot.client.Beside(ctx, c.settings.Fetch, git.Want{Hash: c.now.head, Ref: c.layout.branch}, wants)
}

// hold restores the previous result and its head, so that the next sync asks again.
func (c *comparison) hold(why error) {
	c.was, c.shown = c.stood()
	s := c.snapshot
	if !c.isGrown {
		c.now.head = c.was.head
	}
	for commit, tag := range c.tags {
		_, isShown := c.shown[commit]
		switch {
		case c.own[commit]:
			c.now.unsure[commit] = !c.isGrown
		case isShown || c.was.beside[commit]:
			c.now.beside[commit], c.now.unsure[commit] = c.was.beside[commit], c.was.unsure[commit]
		default:
			c.now.beside[commit], c.now.unsure[commit] = true, true
		}
		if c.now.beside[commit] && c.now.unsure[commit] {
			s.report(Unproven, fmt.Sprintf("%s (%s)", refName(tag.Name), printable.Line(why.Error(), shownBytes)))
		}
	}
	s.partial = true
}

// notPublished returns the reason why there is no published revision of the name; nil if there is one.
func (w work) notPublished(s *Snapshot, pkg, name string) error {
	at, isThere := s.Refs[w.ref(place{Published, pkg, name})]
	now, branch := s.known.standing, strings.TrimPrefix(w.branch, headsPrefix)
	switch commit := at.Target(); {
	case !isThere:
		return ErrNotFound
	case now.beside[commit] && now.unsure[commit]:
		return fmt.Errorf("%w: the server did not say whether branch %s has commit %s of the tag", ErrNotFound, branch, commit)
	case now.beside[commit]:
		return fmt.Errorf("%w: commit %s of the tag is not on branch %s; set spec.upstream.tag to follow the tag anyway", ErrNotFound, commit, branch)
	}
	return nil
}
