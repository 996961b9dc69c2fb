package pkgrepo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// A package may lie in the folder of another one, as edge/web does in edge. Each file has one owner: a folder below a package is a
// package of its own if it has a Kptfile and a branch or tag names it, or if a variant keeps it: its Kptfile on the branch names that
// variant. Then it is no part of the outer package: the content of that, and its tree id, are those of the folder without it. All other
// folders are part of the outer package, with their Kptfiles.

// ErrNested says that files would belong to two packages, one of which lies in the other.
var ErrNested = errors.New("packages overlap")

// unnamed are the wanted packages that no branch or tag names and that are in another package, as far as the branch is known.
func (e *explorer) unnamed() (found []string) {
	if e.snapshot.Head == "" {
		return nil
	}
	tops, isKnown := e.snapshot.known.folders(e.snapshot.Head)
	outer := map[string]bool{}
	for _, f := range tops.outermost {
		if pkg, ok := e.below(f.Dir); ok && isKnown {
			outer[pkg] = true
		}
	}
	for pkg := range e.settings.Wanted {
		isInner := !isKnown
		for at, r := range pkg {
			isInner = isInner || r == '/' && (outer[pkg[:at]] || e.snapshot.Packages[pkg[:at]] != nil)
		}
		if isInner && e.snapshot.Packages[pkg] == nil {
			found = append(found, pkg)
		}
	}
	slices.Sort(found)
	return found
}

// nameKept adds those of the unnamed packages to the named ones that their variants have made: a person who deletes a tag has not given
// the package to the outer one. It returns whether there are any.
func (e *explorer) nameKept() bool {
	s, isAny := e.snapshot, false
	for _, pkg := range e.unnamed() {
		d, ok := s.known.detail(e.spot(s.Head, e.path(pkg)))
		if !ok || d.tree == "" {
			continue
		}
		if l, ok := s.known.factsOf(d.tree); ok && slices.Contains(e.settings.Wanted[pkg], l.facts.Variant) {
			s.at(pkg)
			s.named, isAny = append(s.named, pkg), true
		}
	}
	if isAny {
		slices.Sort(s.named)
		e.withouts = map[string]string{}
	}
	return isAny
}

// within are the packages below another one that branches and tags name, or that variants keep.
func (s *Snapshot) within(pkg string) []string {
	if s == nil {
		return nil
	}
	from, _ := slices.BinarySearch(s.named, pkg+"/")
	to, _ := slices.BinarySearch(s.named, pkg+"0") // It comes after the slash.
	return s.named[from:to]
}

// inner are the Kptfiles of these packages, by their paths in the outer one.
func (s *Snapshot) inner(pkg string) (kptfiles []string) {
	for _, below := range s.within(pkg) {
		kptfiles = append(kptfiles, strings.TrimPrefix(below, pkg+"/")+"/"+kpt.KptfileName)
	}
	return kptfiles
}

// without is the digest of the packages below another one; empty if there are none.
func (s *Snapshot) without(pkg string) string {
	inner := s.inner(pkg)
	if len(inner) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(inner, "\n")))
	return string(sum[:])
}

// spot is the place of a package in a commit.
func (w work) spot(s *Snapshot, commit, pkg string) spot {
	return spot{commit, w.path(pkg), s.without(pkg)}
}

// spot is the place of a folder in a commit. A package may have many drafts and many packages below it.
func (e *explorer) spot(commit, path string) spot {
	pkg, _ := e.below(path)
	digest, isKnown := e.withouts[pkg]
	if !isKnown {
		digest = e.snapshot.without(pkg)
		e.withouts[pkg] = digest
	}
	return spot{commit, path, digest}
}

// seen asks whether a package had a tree in a history.
func (w work) seen(s *Snapshot, tip git.Want, pkg, tree string, most int) git.Seen {
	return git.Seen{Tip: tip, Path: w.path(pkg), Tree: tree, Without: s.inner(pkg), Max: most}
}

// isAt tells whether a commit has a package in a folder.
func (p *plan) isAt(commit, pkg string) (bool, error) {
	if commit == "" {
		return false, nil
	}
	found, err := p.base(commit)
	if err != nil {
		return false, err
	}
	_, err = found.ReadFile(p.path(pkg)+"/"+kpt.KptfileName, p.depot.options.MaxKptfileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case isContent(err):
		err = nil // It is there all the same.
	}
	return err == nil, err
}

// separate returns ErrNested if a file of the package is in an inner package of the commit or of the branch, or if the package has the
// Kptfile of an inner package.
func (p *plan) separate(pkg, on string, made kpt.Package) error {
	files := made.Paths()
	for _, inner := range p.snapshot.within(pkg) {
		folder := strings.TrimPrefix(inner, pkg+"/")
		overlap := overlapping(files, folder)
		if overlap == "" {
			continue
		}
		_, is := made[folder+"/"+kpt.KptfileName]
		for _, commit := range []string{on, p.snapshot.Head} {
			isAt, err := p.isAt(commit, inner)
			if err != nil {
				return err
			}
			is = is || isAt
		}
		if is {
			return fmt.Errorf("%w: file %s of package %s lies in package %s; rename the folder upstream, or remove the branches and tags of the inner package",
				ErrNested, shown(overlap), shown(pkg), shown(inner))
		}
	}
	return nil
}

// bringsNone returns ErrNested if an open change contains an inner package that was never published and is not on the branch: publishing
// the change would omit the files of the inner package.
func (p *plan) bringsNone(change *Revision) error {
	for _, inner := range p.snapshot.within(change.Package) {
		if p.snapshot.Package(inner).Newest() != nil {
			continue
		}
		isInChange, err := p.isAt(change.Commit, inner)
		isOnBranch, other := p.isAt(p.snapshot.Head, inner)
		if err = errors.Join(err, other); err != nil {
			return err
		}
		if isInChange && !isOnBranch {
			return fmt.Errorf("%w: the change of package %s contains package %s, which another change creates; remove one of the changes",
				ErrNested, shown(change.Package), shown(inner))
		}
	}
	return nil
}

// overlapping is the first of the files, which are in order, that is in a folder or in the place of one that leads there; empty if there
// is none.
func overlapping(files []string, folder string) string {
	for at, r := range folder + "/" {
		if r == '/' {
			if _, isFile := slices.BinarySearch(files, folder[:at]); isFile {
				return folder[:at]
			}
		}
	}
	at, _ := slices.BinarySearch(files, folder+"/")
	if at < len(files) && strings.HasPrefix(files[at], folder+"/") {
		return files[at]
	}
	return ""
}

// unclaimed returns ErrNested if the package would take files of another package: its folder is part of an outer package on the branch,
// or contains a package without branch or tag.
func (p *plan) unclaimed(ctx context.Context, path string) error {
	if p.snapshot.Package(path).isOnBranch() {
		return nil
	}
	if outer := p.outer(path); outer != "" {
		tree, err := p.treeAt(ctx, p.snapshot.Head, path)
		if tree != "" && err == nil {
			err = fmt.Errorf("%w: folder %s is part of package %s; choose another package", ErrNested, shown(p.path(path)), shown(outer))
		}
		return err
	}
	for name := range p.snapshot.Packages {
		if _, isNamed := slices.BinarySearch(p.snapshot.named, name); !isNamed && strings.HasPrefix(name, path+"/") {
			return fmt.Errorf("%w: package %s would become part of package %s, because it has no branch or tag; tag it as %s/v1, or choose another package",
				ErrNested, shown(name), shown(path), printable.Line(p.path(name), shownBytes))
		}
	}
	return nil
}

// outer is the package on the branch in whose folder another one lies; empty if there is none.
func (p *plan) outer(path string) string {
	for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
		if p.snapshot.Package(path[:at]).isOnBranch() {
			return path[:at]
		}
	}
	return ""
}
