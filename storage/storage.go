// Package storage keeps artifacts: immutable bodies, each published under a path and named by its digest.
// It does not know what an artifact holds, where it came from, or that Kubernetes exists.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
)

var (
	// ErrNotFound says that nothing is stored under the given path or object.
	ErrNotFound = errors.New("not found in storage")
	// ErrDamaged says that the stored bytes no longer match their digest. They are not served any more.
	ErrDamaged = errors.New("stored artifact is damaged")
	// ErrPathTaken says that a path already names other bytes. A published path never changes its bytes.
	ErrPathTaken = errors.New("path already names other bytes")
	// ErrTooLarge says that a body grew beyond the limit it was staged with.
	ErrTooLarge = errors.New("artifact exceeds the size limit")
	// ErrInUse says that another process writes to this storage.
	ErrInUse = errors.New("storage is in use by another process")
)

// Object names the API object that owns artifacts. Kind is lower case, as it stands in paths and URLs.
type Object struct {
	Kind, Namespace, Name string
}

// Dir is the folder of the object's artifacts, relative to the root of the storage: <kind>/<namespace>/<name>.
func (o Object) Dir() string { return path.Join(o.Kind, o.Namespace, o.Name) }

// String is the object's folder; it serves as a log value.
func (o Object) String() string { return o.Dir() }

// Artifact is one published body.
type Artifact struct {
	// Path is relative to the root of the storage, with slashes: <kind>/<namespace>/<name>/<file>.
	Path string `json:"path"`
	// Digest is the digest of the body.
	Digest digest.Digest `json:"digest"`
	// Size is the length of the body in bytes.
	Size int64 `json:"size"`
	// Revision is the upstream revision the body was made from.
	Revision string `json:"revision"`
	// StoredAt is when the body was published, in UTC and whole seconds.
	StoredAt time.Time `json:"storedAt"`
	// Metadata is handed through to the API object's status.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Companion is a second body that was made together with this one; zero without one.
	Companion Companion `json:"companion,omitzero"`
}

// Companion is a body that is stored beside an artifact, say what is known about the artifact's inside. It comes, stays and
// goes with the artifact, and is as immutable.
type Companion struct {
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// companionSuffix makes the path of a companion out of its artifact's.
const companionSuffix = ".companion"

// CompanionPath is where the artifact's companion is opened; empty without one.
func (a Artifact) CompanionPath() string {
	if a.Companion == (Companion{}) {
		return ""
	}
	return a.Path + companionSuffix
}

// Superseded is an artifact that is no longer current.
type Superseded struct {
	Artifact
	// SupersededAt is when status was found to name another artifact; zero until then.
	SupersededAt time.Time `json:"supersededAt,omitzero"`
}

// Record is what the storage knows about one object: its current artifact, what that was made from, and the
// artifacts it replaced. It is written after the body is durable and before anything is reported.
type Record struct {
	// UID is the UID of the API object; a record of another UID belongs to a deleted namesake.
	UID string `json:"uid"`
	// ConfigChecksum is the contentConfigChecksum that the current artifact was made under.
	ConfigChecksum string `json:"contentConfigChecksum"`
	// BaseChecksum is the contentConfigChecksum of the first artifact of this object. File names depend on it.
	BaseChecksum string `json:"baseConfigChecksum"`
	// ContentKey names what the current body was made from and how, where the kind of source can tell without
	// fetching it: content of the same key has the same body.
	ContentKey string `json:"contentKey,omitempty"`
	// VerifiedBy says who signed the revision; empty when no proof was asked for.
	VerifiedBy string `json:"verifiedBy,omitempty"`
	// Proof names what was proven of the revision before it was fetched, where that had to be; it holds for good.
	Proof string `json:"proof,omitempty"`
	// Title is the content's own name for itself, e.g. the commit's subject.
	Title string `json:"title,omitempty"`
	// Memo is what the kind of source wants to be told of again when it asks upstream the next time.
	Memo string `json:"memo,omitempty"`
	// Current is the artifact that status names, or is about to.
	Current Artifact `json:"current"`
	// Superseded holds the artifacts before it that are still stored, newest first.
	Superseded []Superseded `json:"superseded,omitempty"`
}

// Staged is a durable body that is not published yet. It is removed by Discard, or when it stays unpublished.
type Staged struct {
	Digest digest.Digest
	Size   int64
	// Companion is another staged body that is going to be the first one's companion; zero without one. What is done with the
	// first one is done with both.
	Companion Companion
}

// Body is an open artifact body.
type Body interface {
	io.ReadSeekCloser
	// Stat tells digest, size and time of the open body.
	Stat() Artifact
}

// Reader gives published bodies by their path.
type Reader interface {
	// Open returns the body published under the path, or under <object>/LatestFile or LatestIndex the object's current body, whose
	// Stat tells its own path. A body whose bytes no longer match its digest is never
	// returned: the error is then ErrDamaged, and ErrNotFound from the next call on.
	Open(ctx context.Context, path string) (Body, error)
}

// Writer stores and publishes bodies. Every step is durable when it returns and may be repeated after a crash.
type Writer interface {
	// Algorithm is what Stage hashes bodies with.
	Algorithm() digest.Algorithm
	// Stage writes a body aside and makes it durable. The body may hold at most limit bytes (ErrTooLarge);
	// zero means no limit. When write fails, nothing is left behind.
	Stage(ctx context.Context, limit int64, write func(io.Writer) error) (Staged, error)
	// Restage stages a stored body again, to be published for another object, revision or record. ErrNotFound when there is
	// none; ErrDamaged when it was found damaged just now.
	Restage(ctx context.Context, body Staged) error
	// Publish makes the staged body appear under record.Current.Path and then replaces the object's record.
	// Current.Digest, Current.Size and Current.Companion are set from staged; Current.StoredAt is filled in when it is zero. Superseded
	// is the store's own: what was current moves to its front, unless it has the same path. ErrPathTaken when the
	// path names other bytes, also bytes that have been lost since: they need another path. ErrInvalidPath when the
	// path is not in the object's folder; ErrNotFound when the body is not staged; ErrDamaged when it rotted there.
	// When it fails, nothing has changed and the body is still staged, unless it was the body that was at fault.
	Publish(ctx context.Context, object Object, staged Staged, record Record) (Record, error)
	// Discard drops a staged body that is not going to be published.
	Discard(ctx context.Context, staged Staged) error
	// Record returns the object's record. ErrNotFound without one, or when the current body or its companion is missing or has
	// been found damaged: in both cases the artifact must be made again.
	Record(ctx context.Context, object Object) (Record, error)
	// Collect removes superseded artifacts that the policy lets go, and returns what it removed. Named is the path that
	// status names now: the time of what it named before begins, and what was published after it and is current no more goes
	// at once. The current artifact, and the named one, are never removed.
	Collect(ctx context.Context, object Object, named string) ([]Artifact, error)
	// Delete removes everything that is stored for the object. It is no error when there is nothing.
	Delete(ctx context.Context, object Object) error
}

// Store reads and writes.
type Store interface {
	Reader
	Writer
	// Objects lists the objects that have anything stored, in lexical order.
	Objects(ctx context.Context) ([]Object, error)
}

// PathError names the path an error is about.
func PathError(p string, err error) error { return fmt.Errorf("artifact %q: %w", p, err) }
