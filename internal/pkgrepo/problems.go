package pkgrepo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/printable"
)

// Cause is the reason why a part of a repository is left out or cannot be used. Other parts are not affected.
type Cause string

// The causes.
const (
	// OverLimit is for packages and refs beyond a bound.
	OverLimit Cause = "OverLimit"
	// InTheWay is for branches and tags with the name of a folder that refs of packages need.
	InTheWay Cause = "InTheWay"
	// Unreadable is for branches and tags of a package that their commit does not have, or that is invalid there.
	Unreadable Cause = "Unreadable"
	// Unsafe is for folders and branches of packages with unsafe names.
	Unsafe Cause = "Unsafe"
	// OfNoPackage is for tags with the form of a package's tag, but without a package.
	OfNoPackage Cause = "OfNoPackage"
	// Unproven is for tags that are not used because the server did not say whether the branch has their commits.
	Unproven Cause = "Unproven"
)

// Problem lists the parts with one cause: the first names in order, and the total number.
type Problem struct {
	Names []string
	Count int
}

// report adds a name to the problem with the cause.
func (s *Snapshot) report(of Cause, name string) {
	s.Problems[of] = Problem{Names: append(s.Problems[of].Names, name)}
}

// maxNames bounds the names of a problem.
const maxNames = 20

// cut sorts the names of each problem and truncates them, so that each snapshot has the same names.
func (s *Snapshot) cut() {
	for of, p := range s.Problems {
		slices.Sort(p.Names)
		names := slices.Compact(p.Names)
		s.Problems[of] = Problem{slices.Clip(slices.Clone(names[:min(len(names), maxNames)])), len(names)}
	}
}

// refName is a branch or tag as people call it.
func refName(ref string) string {
	if branch, ok := strings.CutPrefix(ref, headsPrefix); ok {
		return "branch " + printable.Line(branch, shownBytes)
	}
	return "tag " + printable.Line(strings.TrimPrefix(ref, tagsPrefix), shownBytes)
}

// reportUnreadable names the branches and tags of packages that cannot be read. Where a package is nowhere else, the tags are those of
// something else.
func (s *Snapshot) reportUnreadable() {
	for _, pkg := range s.Packages {
		cause := OfNoPackage
		all := slices.Concat(pkg.Open, pkg.newest())
		if pkg.Branch != nil {
			all = append(all, *pkg.Branch)
		}
		isElsewhere := func(r Revision) bool { return r.Lifecycle != Published || !errors.Is(r.Err, fs.ErrNotExist) }
		if slices.ContainsFunc(all, isElsewhere) {
			cause = Unreadable
		}
		for i := range all {
			if all[i].Err != nil {
				s.report(cause, fmt.Sprintf("%s (%s)", refName(all[i].Ref), printable.Line(all[i].Err.Error(), shownBytes)))
			}
		}
	}
}

// folderOf is the folder of refs that a ref of the package in a lifecycle is in.
func (l layout) folderOf(lifecycle Lifecycle, pkg string) string {
	return strings.TrimSuffix(l.ref(place{lifecycle: lifecycle, pkg: pkg}), "/")
}

// above is a ref that has the name of a folder, or of one above it; empty without one. Git makes no ref in that folder then.
func above(refs map[string]git.Ref, folder string) string {
	for at := len(headsPrefix); at <= len(folder); at++ {
		if at < len(folder) && folder[at] != '/' {
			continue
		}
		if _, isThere := refs[folder[:at]]; isThere {
			return folder[:at]
		}
	}
	return ""
}

// reportInTheWay names the branches and tags that prevent the creation of refs of packages.
func (w work) reportInTheWay(s *Snapshot) {
	found := map[string]string{}
	for path := range s.Packages {
		for _, lifecycle := range []Lifecycle{Draft, Proposed, DeletionProposed, Published} {
			folder := w.folderOf(lifecycle, path)
			if ref := above(s.Refs, folder); ref != "" && (found[ref] == "" || folder < found[ref]) {
				found[ref] = folder
			}
		}
	}
	for _, ref := range []string{draftPrefix, proposedPrefix, deletionPrefix} { // Packages will come.
		if ref = strings.TrimSuffix(ref, "/"); s.Refs[ref].Name != "" && ref != w.branch {
			found[ref] = cmp.Or(found[ref], ref)
		}
	}
	for ref, folder := range found {
		s.report(InTheWay, inTheWay(ref, folder))
	}
}

func inTheWay(ref, folder string) string {
	return fmt.Sprintf("%s is in the way of %s/…", refName(ref), strings.TrimPrefix(refName(folder), "branch "))
}

// isFree returns ErrInTheWay if Git cannot create the refs that a change needs.
func (p *plan) isFree(t *task) error {
	in := map[Kind]Lifecycle{
		Write: Draft, Reject: Draft, Propose: Proposed, Publish: Published, Record: Published, ProposeDeletion: DeletionProposed,
	}
	lifecycle, makes := in[t.Kind]
	if !makes {
		return nil
	}
	folder := p.folderOf(lifecycle, t.Package)
	if ref := above(p.snapshot.Refs, folder); ref != "" {
		return fmt.Errorf("%w: %s; rename or remove it", ErrInTheWay, inTheWay(ref, folder))
	}
	return nil
}
