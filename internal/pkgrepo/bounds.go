package pkgrepo

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
)

// leftOut are the packages that a bound leaves out of a snapshot, in full or in part, as hashes of their paths: there may be many, and
// each would take its name in memory.
type leftOut map[uint64]struct{}

// CheckKnown returns ErrLimit for a package that a bound leaves out of the snapshot, in full or in part. The absence of the package or of one
// of its revisions then proves nothing. The empty path stands for the tags of the repository that belong to no package.
func (s *Snapshot) CheckKnown(path string) error {
	if s == nil || len(s.leftOut) == 0 {
		return nil
	}
	if _, isLeftOut := s.leftOut[maphash.String(s.seed, path)]; !isLeftOut {
		return nil
	}
	what := "package " + shown(path) + " is left out"
	if path == "" {
		what = "tags are left out"
	}
	return fmt.Errorf("%w: %s, because %s; remove branches, tags or packages from it", ErrLimit, what, s.excess)
}

// leaveOut drops a package, or says that some of its refs are dropped.
func (s *Snapshot) leaveOut(path, what, excess string) {
	if s.leftOut == nil {
		s.leftOut = leftOut{}
	}
	s.leftOut[maphash.String(s.seed, path)] = struct{}{}
	s.excess = excess
	s.report(OverLimit, what)
}

// candidate is a ref that may have to be left out.
type candidate struct {
	name string
	place
	// class is the kind of the ref, turn its position among the refs of its package, and rank the position of the package.
	class, turn, rank int
}

// The classes of refs, in the order in which they are kept.
const (
	ofBranch = iota
	ofTags
	ofChanges
	ofOthers
)

// trim keeps MaxRefs refs: the branch, then tags of packages and versions of the repository, then drafts, proposals and marks, then all
// others. Of tags and of changes each package has one after the other, the newest first, so that no package takes the room of others. Among
// packages, those that are wanted come first, then those with tags, and then the names decide.
func (w work) trim(s *Snapshot, refs map[string]git.Ref) map[string]git.Ref {
	most := w.bounds.refs
	if len(refs) <= most {
		return refs
	}
	all := w.candidates(refs)
	kept := make(map[string]git.Ref, most)
	for _, c := range all[:most] {
		kept[c.name] = refs[c.name]
	}
	excess := fmt.Sprintf("the repository has %d branches and tags, more than %s", len(refs), w.bounds.said(most))
	s.RefsLeftOut = len(refs) - most
	for _, c := range all[most:] {
		if c.class == ofOthers {
			s.report(OverLimit, refName(c.name))
			s.excess = excess
			continue
		}
		s.leaveOut(c.pkg, refName(c.name), excess)
	}
	return kept
}

// candidates are all refs, in the order in which they are kept.
func (w work) candidates(refs map[string]git.Ref) []candidate {
	all := make([]candidate, 0, len(refs))
	hasTags := map[string]bool{}
	for name := range refs {
		c := candidate{name: name, class: ofOthers}
		p, ok := w.parse(name)
		tag, isTag := strings.CutPrefix(name, tagsPrefix)
		_, _, isVersion := parseName(tag)
		switch _, _, isRevision := parseName(p.name); {
		case name == w.branch:
			c.class = ofBranch
		case ok && p.lifecycle == Published && isRevision:
			c.place, c.class, hasTags[p.pkg] = p, ofTags, true
		case ok && p.lifecycle != Published:
			c.place, c.class = p, ofChanges
		case isTag && isVersion:
			c.name, c.class = name, ofTags
			c.place.name = tag
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.class, b.class), strings.Compare(a.pkg, b.pkg), a.compare(b))
	})
	for i := range all {
		c := &all[i]
		if i > 0 && all[i-1].class == c.class && all[i-1].pkg == c.pkg {
			c.turn = all[i-1].turn + 1
		}
		c.rank = w.rank(c.pkg, hasTags[c.pkg])
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.turn, b.turn), cmp.Compare(a.rank, b.rank))
	})
	return all
}

// rank orders packages that are not known to be on the branch.
func (w work) rank(pkg string, hasTags bool) int {
	switch {
	case len(w.settings.Wanted[pkg]) > 0:
		return 0
	case hasTags:
		return 1
	}
	return 2
}

// compare orders the refs of a package: the newest tag, the mark, the proposal, and the draft of a variant come first.
func (c candidate) compare(other candidate) int {
	if c.class == ofTags {
		number, version, _ := parseName(c.place.name)
		others, otherVersion, _ := parseName(other.place.name)
		return cmp.Or(cmp.Compare(others, number), otherVersion.Compare(version), compareTies(other.place.name, c.place.name))
	}
	order := func(c candidate) int {
		switch {
		case c.lifecycle == DeletionProposed:
			return 0
		case c.lifecycle == Proposed:
			return 1
		case workspaceNumber(c.place.name) > 0:
			return 2
		}
		return 3
	}
	return cmp.Or(cmp.Compare(order(c), order(other)), strings.Compare(c.name, other.name))
}

// isOver tells whether there are too many packages.
func (e *explorer) isOver() bool { return len(e.snapshot.Packages) > e.bounds.packages }

// bound keeps MaxPackages packages: those on the branch first, then those that are wanted, those with tags, and the others by name.
func (e *explorer) bound() {
	s, most := e.snapshot, e.bounds.packages
	if !e.isOver() {
		return
	}
	onBranch := map[string]bool{}
	found, _ := s.known.folders(s.Head)
	for _, f := range found.outermost {
		if pkg, ok := e.below(f.Dir); ok {
			onBranch[pkg] = true
		}
	}
	rank := func(path string) int {
		if onBranch[path] {
			return -1
		}
		return e.rank(path, len(s.Packages[path].Published) > 0)
	}
	paths := s.paths()
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	excess := fmt.Sprintf("the repository has %d packages, more than %s", len(paths)+len(found.beyond), e.bounds.said(most))
	for _, path := range paths[most:] {
		delete(s.Packages, path)
		s.leaveOut(path, "package "+shown(path), excess)
	}
}

// isOf tells whether the snapshot was made of the refs, so that nothing has moved.
func (w work) isOf(s *Snapshot, listed []git.Ref) bool {
	if s.listing == "" {
		return sameRefs(s.Refs, listed)
	}
	return s.listing == w.digest(listed)
}

// digest names a list of refs of which not all are kept, and the packages that are wanted.
func (w work) digest(listed []git.Ref) string {
	sum := sha256.New()
	for _, ref := range listed {
		_, _ = fmt.Fprintf(sum, "%s %s %s\n", ref.Name, ref.Hash, ref.Peeled)
	}
	_, _ = io.WriteString(sum, strings.Join(slices.Sorted(maps.Keys(w.settings.Wanted)), "\n"))
	return string(sum.Sum(nil))
}

// carry copies the omissions of the snapshot whose refs this one was made from. The next sync reads all refs again.
func (s *Snapshot) carry(before *Snapshot) {
	if before.excess == "" {
		return
	}
	s.leftOut, s.excess, s.partial, s.RefsLeftOut = maps.Clone(before.leftOut), before.excess, true, before.RefsLeftOut
	s.Problems[OverLimit] = before.Problems[OverLimit]
}

// missing is the error of a selector that finds nothing. If refs are left out, it is ErrLimit, because the selected ref may be one of them.
func (s *Snapshot) missing(err error) error {
	if s.RefsLeftOut > 0 && errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w among the known refs, because %s; remove branches or tags", ErrLimit, err, s.excess)
	}
	return err
}

// isListed tells whether all packages on the branch are known with all their tags.
func (s *Snapshot) isListed() bool {
	isPart := func(path string) bool { return s.Packages[path].Branch != nil && s.CheckKnown(path) != nil }
	return len(s.known.found.beyond) == 0 && (len(s.leftOut) == 0 || !slices.ContainsFunc(s.paths(), isPart))
}
