package pkgrepo

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/kpt"
)

// Kind is what a change does.
type Kind string

// The kinds of changes. Each is safe to ask for again: what is done already is no error.
const (
	// Write puts a commit on a draft, which it begins where there is none.
	Write Kind = "Write"
	// Preview makes what a Write would put into the package, and writes nothing. It also looks at a proposal, to which nobody
	// writes.
	Preview Kind = "Preview"
	// Propose freezes a draft, and Reject thaws it.
	Propose Kind = "Propose"
	Reject  Kind = "Reject"
	// Publish puts an open change onto the branch, tags it with the next number, and removes the open change. Where a commit of the
	// change was not made by this program, the publication is a merge of it: no commit of a person becomes unreachable.
	Publish Kind = "Publish"
	// Record tags what somebody else has put onto the branch, as a forge does that merges a change, with the next number, and
	// removes the open change that it is if that is still there. Nothing is written to the branch.
	Record Kind = "Record"
	// Drop removes an open change. It is ErrNotOwn where a commit on it was not made by this program, unless Discard is set.
	Drop Kind = "Drop"
	// ProposeDeletion marks a published revision, and RejectDeletion takes the mark away.
	ProposeDeletion Kind = "ProposeDeletion"
	RejectDeletion  Kind = "RejectDeletion"
	// Remove takes the package off the branch, which only its newest revision can, and takes that revision's mark away.
	// Tags stay as the record, so that no number is used twice.
	Remove Kind = "Remove"
)

// Change is one that Apply is asked for. Of one open change, and of one package's published revisions, there is one at a time;
// a second one in the same Apply is ErrExists.
type Change struct {
	Kind Kind
	// Package is the path below the repository's directory.
	Package string
	// Workspace names the open change. A Write or Preview without it begins a new one, under the next name; see
	// Package.NextWorkspace.
	Workspace string
	// Revision names the published revision of ProposeDeletion, RejectDeletion and Remove: v3. The newest if empty.
	Revision string
	// Expect is the commit that the change is bound to: the tip of the open change or the commit of the revision. If the
	// repository has another one, the change is ErrMoved. Publish and Remove require it; it is what was approved.
	Expect string
	// Discard says that a Drop also removes commits that people made: somebody asked for exactly that, and named the tip.
	Discard bool
	// Tree is what a Record is bound to: the package's folder on the branch. With another one there, it is ErrMoved.
	Tree string
	// Make makes what a Write or Preview puts into the package. It is called again after a lost race. All of an Apply have half of the
	// time until its deadline: one that is cut off is ErrTimeout, and those that are not begun are ErrPostponed.
	Make func(context.Context, Current) (Made, error)
	// Cost is what Make took the last time; zero where it is not known. Changes with the least are made first.
	Cost time.Duration
	// Leftovers are what a Prune removes, MaxLeftovers at most. Those that are somewhere else by now stay.
	Leftovers []Leftover
	// Message describes the commit of a Publish or a Remove; a zero one is filled in. That of a ProposeDeletion says which variant
	// asks for it, and is empty for people.
	Message Message
}

// Current is what a Write finds.
type Current struct {
	// Open is the draft that is written to, or the proposal that is looked at, and Branch what is on the branch; nil if there is
	// none. The change that Make makes is begun on Branch: its tree is what the package's annotation names as its base. In a
	// workspace that a controller named, it is taken at its word; the Kptfiles of people's have the annotation from wherever
	// they were copied.
	Open, Branch *Revision
	// Workspace is that of the draft, also of one that is begun.
	Workspace string
	// Local is the package of the draft, else of the branch; nil if there is neither.
	Local kpt.Package
}

// Made is what a Write is to put into the package.
type Made struct {
	Package kpt.Package
	Message Message
	// Unchanged says that nothing is to be written.
	Unchanged bool
}

// Result is what became of a change.
type Result struct {
	// Commit is the tip of the open change, or the commit on the branch that published or removed a package. It is empty where
	// there is none, and that of the draft before where a Write changed nothing.
	Commit string
	// Tree is the package's folder in it.
	Tree string
	// Workspace is that of the open change that was written.
	Workspace string
	// Number is that of a published revision.
	Number int
	// Changed tells whether the repository was changed for it.
	Changed bool
	// Took is how long Make took.
	Took time.Duration
	// Gone are the leftovers that a Prune removed. What a server did not let go is no error: see Repository.Refused.
	Gone []Leftover
	// Err is what was wrong with this change alone, or what was wrong with all: ErrOutOfDate, ErrMoved, ErrExists, ErrGone,
	// ErrProposed, ErrTimeout, ErrPostponed, ErrInTheWay, ErrLimit, ErrReadOnly, ErrName, git.ErrRejected, git.ErrRefMoved after too many lost races, an error of Make, or
	// one of the connection.
	Err error
}
