package pkgrepo

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
)

// Lifecycle is how far a revision has come.
type Lifecycle string

// The lifecycles of a revision. What is on the branch has none.
const (
	Draft            Lifecycle = "Draft"
	Proposed         Lifecycle = "Proposed"
	Published        Lifecycle = "Published"
	DeletionProposed Lifecycle = "DeletionProposed"
)

// Revision is one state of a package: an open change, a published revision, or what is on the branch.
type Revision struct {
	// Package is the path below the repository's directory.
	Package string
	// Workspace is the name of an open change, and of the one that a revision was published from where its commit tells.
	Workspace string
	// Number is the N of a revision published as vN, else zero.
	Number int
	// Name is the last part of a published revision's tag: v3, or v1.2.0 for those that people tagged themselves.
	Name      string
	Lifecycle Lifecycle
	// Ref is the full name of the branch or tag.
	Ref string
	// Commit is what the ref leads to, and Tree the package's folder in it. Of published revisions that are not among the
	// newest Detailed of their package the tree is not known.
	Commit, Tree string
	// Source is the tip of the open change that the revision was published from, where its commit tells.
	Source string
	// IsOwn says of an open change that every commit on it was made by this program. It is false where that cannot be told.
	IsOwn bool
	// Mark is the commit of the branch that proposes the deletion of a published revision, and Proposer the variant that asked for
	// it, which is the zero one for people, and for revisions that are not among the newest Detailed.
	Mark     string
	Proposer Proposer
	// Facts are those of the Kptfile. Of published revisions that are not among the newest Detailed there are none.
	Facts kpt.Facts
	// Err says why there are no facts, or no tree, though there should be: a Kptfile that cannot be read, a tag of a package
	// that is not in its commit. It lasts as long as the commit.
	Err error
}

// Proposer is the variant that proposed a deletion, as <namespace>/<name> and the UID of the object.
type Proposer struct{ Variant, UID string }

// Package is all that a repository has of a package.
type Package struct {
	// Path is below the repository's directory.
	Path string
	// Branch is what is on the branch; nil if nothing. Its commit is the head of the branch. It has the number and the name
	// of the newest published revision of the same tree, if there is one.
	Branch *Revision
	// Open are the drafts and the proposed changes, by workspace.
	Open []Revision
	// Published begins with the newest: by number, then those that have a semantic version, by precedence. Tags whose commits are not
	// in the history of the branch are none of them: another branch of the Git repository published those.
	Published []Revision

	// highest is the highest number that a tag of the package has, on whatever branch.
	highest int
	// beside are the commits of tags that are no revisions.
	beside []string
}

// isOnBranch tells whether the branch has the package's folder, also where nobody can read what is in it.
func (p *Package) isOnBranch() bool {
	return p != nil && p.Branch != nil && !errors.Is(p.Branch.Err, fs.ErrNotExist)
}

// Next is the number that the next revision gets: one more than the highest there has been, also on other branches, with which the
// branch shares its tags.
func (p *Package) Next() int { return p.highest + 1 }

// NextWorkspace is the name of a workspace that nobody has used, as Porch counts: one more than the highest there is among
// open changes and the newest published revisions.
func (p *Package) NextWorkspace() string {
	highest := 0
	for _, all := range [][]Revision{p.Open, p.Published} {
		for i := range all {
			highest = max(highest, workspaceNumber(all[i].Workspace))
		}
	}
	return VariantWorkspace + numbered(highest + 1)[1:]
}

// Find is the open change of a workspace; nil if there is none. Where a crash left both, it is the proposed one.
func (p *Package) Find(workspace string) (found *Revision) {
	if p == nil {
		return nil
	}
	for i := range p.Open {
		if open := &p.Open[i]; open.Workspace == workspace && (found == nil || open.Lifecycle == Proposed) {
			found = open
		}
	}
	return found
}

// open is the open change of a workspace in a lifecycle.
func (p *Package) open(workspace string, lifecycle Lifecycle) *Revision {
	if p == nil {
		return nil
	}
	at, _ := slices.BinarySearchFunc(p.Open, workspace, func(r Revision, workspace string) int { return strings.Compare(r.Workspace, workspace) })
	for ; at < len(p.Open) && p.Open[at].Workspace == workspace; at++ {
		if p.Open[at].Lifecycle == lifecycle {
			return &p.Open[at]
		}
	}
	return nil
}

// Newest is the newest published revision; nil if there is none.
func (p *Package) Newest() *Revision {
	if p == nil || len(p.Published) == 0 {
		return nil
	}
	return &p.Published[0]
}

// Release is the published revision of that name; nil if there is none.
func (p *Package) Release(name string) *Revision {
	if p == nil {
		return nil
	}
	return first(p.Published, func(r *Revision) bool { return r.Name == name })
}

// first is the first revision that fits; nil if none does.
func first(all []Revision, fits func(*Revision) bool) *Revision {
	for i := range all {
		if fits(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Snapshot is what a repository had when it was last looked at. Nobody may change it.
type Snapshot struct {
	// Head is the commit that the branch names; empty as long as there is no branch, or nothing at all.
	Head string
	// Refs are all branches and tags by their full names, MaxRefs at most.
	Refs map[string]git.Ref
	// RefsLeftOut is how many there are beyond that.
	RefsLeftOut int
	// Packages are those on the branch, outermost folders with a Kptfile, and those that branches and tags name, by their
	// path below the directory, MaxPackages at most. See CheckKnown before you conclude anything from what is not there.
	Packages map[string]*Package
	// Problems are what is left out of the snapshot, or is of no use, by its cause.
	Problems map[Cause]Problem
	// Unfinished says why what a crash left half done could not be completed; nil if there is nothing, or nothing any more.
	Unfinished error

	known *known
	// elsewhere are the packages of which only other branches have tags, until it is known whether this one has the folder.
	elsewhere map[string]*Package
	// leftOut are the packages of which nothing, or not all, is known, with the seed of their hashes, and excess says why.
	leftOut leftOut
	seed    maphash.Seed
	excess  string
	// listing names the refs and wanted packages that the snapshot was made of, if something of it is left out.
	listing string
	// named are the paths of the packages that branches and tags name, or that variants keep inside other packages, in order.
	named []string
	// partial says that there is more to find out though nothing moves.
	partial bool
}

// Package is that of the path; nil if there is none.
func (s *Snapshot) Package(path string) *Package {
	if s == nil {
		return nil
	}
	return s.Packages[path]
}

// paths are those of the packages in order: what is left out where something is too much is the same each time.
func (s *Snapshot) paths() []string { return slices.Sorted(maps.Keys(s.Packages)) }
