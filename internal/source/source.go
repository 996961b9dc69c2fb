// Package source is the road every artifact takes: open, resolve, up to date?, verify, fetch, archive, record.
// It does not know conditions, events or the API server; a kind of source brings its Opener and nothing else.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/storage"
)

// ErrDigest says that a blob has other bytes than its digest promised.
var ErrDigest = errors.New("content does not match its digest")

// What there may be to say of the object that an artifact is to be taken from.
var (
	// ErrNoObject says that there is no such object.
	ErrNoObject = errors.New("there is no such object")
	// ErrNoArtifact says that nothing is stored of it.
	ErrNoArtifact = errors.New("nothing is stored of the object")
)

// Stage names the step of the pipeline that an error comes from.
type Stage = failure.Stage

// The stages, in their order. Include is the part of open and resolve that looks at other objects' artifacts, and build that of
// fetch which makes something new of what was fetched.
const (
	StageOpen    Stage = "open"
	StageInclude Stage = "include"
	StageResolve Stage = "resolve"
	StageVerify  Stage = "verify"
	StageFetch   Stage = "fetch"
	StageBuild   Stage = "build"
	StageArchive Stage = "archive"
	StageStore   Stage = "store"
)

// StageError is an error together with the stage it comes from. An error that a session has already given a
// stage keeps it.
type StageError = failure.StageError

// Opener prepares one reconcile of an object: it checks the spec and reads the credentials. No upstream is
// contacted yet.
type Opener[O any] interface {
	Open(ctx context.Context, obj O) (Session, error)
}

// Session is one reconcile's dealings with one upstream. One that holds something is an io.Closer beside, and is closed in the
// end.
type Session interface {
	// Resolve finds what the spec selects now without downloading it.
	Resolve(ctx context.Context) (Selection, error)
	// Fetch brings the selected content. Its context bounds all upstream work. Have is the Key of the content that is
	// stored for the object already, empty without one: a session that would bring the very same may leave Tree, Blob and
	// Make out, and what is stored is used again.
	Fetch(ctx context.Context, selected Selection, have string) (Content, error)
}

// Verifier is what a session is beside, when its kind can prove a selection before anything of it is fetched.
type Verifier interface {
	// Verify tells who vouches for the selection; nobody, when the spec asks for no proof. It is an error when the spec
	// does and there is none. It is called whenever the revision or the checksum differs from what is stored.
	Verify(ctx context.Context, selected Selection) (signer string, err error)
}

// Confirmer is what a session is beside, when a selection may have to be looked into before it counts.
type Confirmer interface {
	// Confirm gives the selection a revision, if it has none, and proves its Proof. It is asked while the record has another
	// one. It may download, and bring no more than it needs to know: the content is brought by Fetch.
	Confirm(ctx context.Context, selected Selection) (Selection, error)
}

// Rememberer is what a session is beside, when it can ask upstream for less than what is stored already.
type Rememberer interface {
	// Remember tells what is on record for the object, before Resolve is called. The record is the zero one without any.
	Remember(record storage.Record)
}

// Selection is what a spec selects at this moment.
type Selection struct {
	// Revision names the content upstream, e.g. main@sha1:…. Empty where only Confirm can tell.
	Revision string
	// Proof names what has to be proven of the revision before it counts; empty for nothing.
	Proof string
	// Name and Extension make up the artifact's first file name, e.g. <commit> and .tar.gz.
	Name, Extension string
	// ConfigChecksum is the contentConfigChecksum of the spec; see ConfigChecksum.
	ConfigChecksum string
	// News says in Flux's words that the revision is a new one; empty where these are the same as for most kinds.
	News string
	// Included are the artifacts of other objects that the content takes in, in the order of the spec.
	Included []storage.Artifact
}

// Content is what was fetched: a tree that is going to be archived, or a blob that is stored byte for byte.
type Content struct {
	// Tree is archived under the ignore rules found in it and in Ignore.
	Tree fs.FS
	// Parts remembers what archives of such trees are made of, so that a later one can take over what has not changed. It
	// belongs to whoever may read all of these trees. Nil remembers nothing.
	Parts Parts
	// Ignore holds the spec's ignore rules; nil when there are none.
	Ignore *string
	// Whole says that no rules apply: the tree is archived as it is.
	Whole bool
	// Plain says that the usual exclusions apply, and no rules that are found in the tree.
	Plain bool
	// Blob is stored as it is. It is read only when Tree is nil.
	Blob io.Reader
	// Make writes a blob that is made while it is stored, and returns its companion. It is called only when Tree and Blob
	// are nil.
	Make func(ctx context.Context, to io.Writer) (companion []byte, err error)
	// Digest is what the blob has to hash to, else it is not stored (ErrDigest). Nobody else needs to hash it on its way.
	// Empty where there is nothing to compare with.
	Digest digest.Digest
	// Key names what the content is and how it is archived, so that equal keys mean equal artifacts; empty where that
	// cannot be told.
	Key string
	// Revision and Name are those of what was brought, where upstream has moved on since the selection was made and what it
	// had then is not to be had any more; empty where it is what was selected.
	Revision, Name string
	// RevisionOf gives the revision of content that has none but that of its own bytes; see Put. Nil where there is another.
	RevisionOf func(digest.Digest) string
	// Title is the content's own name for itself, e.g. the commit's subject. Events show it.
	Title string
	// SkippedLinks says which links upstream are not in Tree; empty when none is missing. An event shows it.
	SkippedLinks string
	// Memo goes into the record, see Rememberer.
	Memo string
	// Metadata goes into the artifact's metadata.
	Metadata map[string]string
	// Close lets go of the content; may be nil.
	Close func() error
}

// Parts keeps the index of each archive under the archive's digest, for as long as there is room.
type Parts interface {
	// Load gives nil for an archive whose index is not there.
	Load(archive digest.Digest) []byte
	Save(archive digest.Digest, index []byte)
}

// Subject is the API object as the pipeline sees it.
type Subject struct {
	Object storage.Object
	UID    string
	// Reported is the artifact that status names now. Anybody with a patch right may have written it: it
	// steers only which file name is avoided, and which of the object's superseded artifacts stays.
	Reported *storage.Artifact
	// ReportedChecksum is the contentConfigChecksum that status names now; it is as much to be trusted.
	ReportedChecksum string
	// Timeout bounds all upstream work of one run. Waiting for a fetch slot does not count.
	Timeout time.Duration
	// Asked is what the spec asks for where that is more than Timeout.
	Asked time.Duration
	// Unready says that the object is not known to work.
	Unready bool
}

// named is the path of the artifact that status names; empty when it names none.
func (s Subject) named() string {
	if s.Reported == nil {
		return ""
	}
	return s.Reported.Path
}

// wish is for a share of what all objects share.
func (s Subject) wish() fair.Wish {
	return fair.Wish{Namespace: s.Object.Namespace, Unready: s.Unready}
}

// Change is why an artifact is made.
type Change struct {
	// Revision is the revision that is going to be fetched.
	Revision string
	// Previous is the revision stored until now; empty when nothing is stored.
	Previous string
	// Of is what has revisions, in Flux's words for the kind; "upstream" when empty.
	Of string
	// News is that of the Selection.
	News string
}

// Message says in Flux's words what is being built, and why.
func (c Change) Message(reported bool) string {
	switch {
	case c.Previous == "" && reported:
		return "building artifact: disappeared from storage"
	case c.Previous != c.Revision:
		return "building artifact: " + c.NewRevision()
	default:
		return fmt.Sprintf("building artifact: content configuration changed at revision '%s'", c.Revision)
	}
}

// NewRevision says which revision is new; empty when the revision stays.
func (c Change) NewRevision() string {
	if c.Previous == c.Revision {
		return ""
	}
	return cmp.Or(c.News, fmt.Sprintf("new %s revision '%s'", cmp.Or(c.Of, "upstream"), c.Revision))
}

// Outcome is what a run ended with.
type Outcome struct {
	// Changed is true when an artifact was stored. False is the no-op: the stored artifact is what the spec selects.
	Changed bool
	// Known tells whether the storage could be asked. Without its answer nothing may be concluded about Record.
	Known bool
	// Record is the object's record after the run: after a failed one, what was there before it. It is the zero
	// record when nothing is stored.
	Record storage.Record
	// Selected is what the spec selects; the zero Selection when that could not be found out.
	Selected Selection
	// SkippedLinks is that of the Content, where one was fetched.
	SkippedLinks string
}
