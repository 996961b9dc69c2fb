package pkgrepo

import (
	"cmp"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/revision"
)

// survey sorts refs into packages. What is in their commits is not known yet.
func (w work) survey(refs map[string]git.Ref) *Snapshot {
	s := &Snapshot{Packages: map[string]*Package{}, Problems: map[Cause]Problem{}, Head: refs[w.branch].Target(), seed: w.depot.seed}
	refs = w.trim(s, refs)
	s.Refs = refs
	marks := map[place]string{}
	for name, ref := range refs {
		p, ok := w.parse(name)
		if !ok {
			w.leaveOut(s, name)
			continue
		}
		if p.lifecycle == DeletionProposed {
			marks[p] = ref.Target()
			continue
		}
		found := Revision{Package: p.pkg, Lifecycle: p.lifecycle, Ref: name, Commit: ref.Target()}
		if p.lifecycle == Published {
			if found.Number, _, ok = parseName(p.name); ok {
				found.Name = p.name
				at := s.at(p.pkg)
				at.Published = append(at.Published, found)
				at.highest = max(at.highest, found.Number)
			}
			continue
		}
		found.Workspace = p.name
		at := s.at(p.pkg)
		at.Open = append(at.Open, found)
	}
	s.named = s.paths()
	for _, pkg := range s.Packages {
		pkg.sort(marks)
	}
	return s
}

// leaveOut tells of a ref in the shape of a package's that is none because of its name. What is in other directories, and all
// other branches and tags, are nobody's mistakes.
func (w work) leaveOut(s *Snapshot, name string) {
	for _, prefix := range []string{draftPrefix, proposedPrefix, deletionPrefix} {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && name != w.branch && (w.directory == "" || strings.HasPrefix(rest, w.directory+"/")) {
			s.report(Unsafe, refName(name))
		}
	}
}

// at returns the package, which is made up where there is none.
func (s *Snapshot) at(path string) *Package {
	pkg := s.Packages[path]
	if pkg == nil {
		pkg = cmp.Or(s.elsewhere[path], &Package{Path: path})
		s.Packages[path] = pkg
	}
	return pkg
}

func (p *Package) sort(marks map[place]string) {
	slices.SortFunc(p.Open, func(a, b Revision) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), strings.Compare(a.Ref, b.Ref))
	})
	p.sortPublished()
	for i := range p.Published {
		if mark := marks[place{DeletionProposed, p.Path, p.Published[i].Name}]; mark != "" {
			p.Published[i].Lifecycle, p.Published[i].Mark = DeletionProposed, mark
		}
	}
}

// sortPublished puts the newest first.
func (p *Package) sortPublished() {
	versions := make(map[string]revision.Version, len(p.Published))
	for i := range p.Published {
		_, versions[p.Published[i].Name], _ = parseName(p.Published[i].Name)
	}
	slices.SortFunc(p.Published, func(a, b Revision) int {
		if order := cmp.Compare(b.Number, a.Number); order != 0 {
			return order
		}
		if order := versions[b.Name].Compare(versions[a.Name]); order != 0 {
			return order
		}
		return compareTies(b.Name, a.Name)
	})
}

// newest are the published revisions of which more is wanted than the commit.
func (p *Package) newest() []Revision { return p.Published[:min(len(p.Published), Detailed)] }

// sameRefs tells whether nothing has moved.
func sameRefs(before map[string]git.Ref, listed []git.Ref) bool {
	if len(before) != len(listed) {
		return false
	}
	return !slices.ContainsFunc(listed, func(ref git.Ref) bool { return before[ref.Name] != ref })
}

// byName are the refs of a list. One that is listed twice would be there as the last of them.
func byName(listed []git.Ref) map[string]git.Ref {
	refs := make(map[string]git.Ref, len(listed))
	for _, ref := range listed {
		refs[ref.Name] = ref
	}
	return refs
}
