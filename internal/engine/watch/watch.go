// Package watch keeps what the API server says about the members of installations, and tells when it changes.
// It does not know what a member should look like, nor what is done about a change.
package watch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/engine/cluster"
)

// Subject is what one watch sees. Owners that want the same subject share the watch.
type Subject struct {
	Identity cluster.Identity
	GVK      schema.GroupVersionKind
	// Namespace is empty for kinds that live in none, and for those only.
	Namespace string
}

// Compare orders subjects.
func (s Subject) Compare(other Subject) int {
	return cmp.Or(
		cmp.Compare(s.GVK.Group, other.GVK.Group), cmp.Compare(s.GVK.Kind, other.GVK.Kind),
		cmp.Compare(s.GVK.Version, other.GVK.Version), cmp.Compare(s.Namespace, other.Namespace),
		cmp.Compare(s.Identity.Namespace, other.Identity.Namespace),
		cmp.Compare(s.Identity.ServiceAccount, other.Identity.ServiceAccount),
	)
}

// Event says what became of an object.
type Event int

const (
	// Added is an object that was not there before, or did not carry the owner's label.
	Added Event = iota + 1
	// Modified is an object of which the UID, the generation, a fingerprint or the deletion changed.
	Modified
	// Touched is an object of which only something else changed, such as its status.
	Touched
	// Deleted is an object that is gone, or carries the owner's label no more.
	Deleted
	// Synced says that State knows the subject from now on. The reference has no name.
	Synced
	// Lost says that the subject cannot be watched, as Problems tells. The reference is that of Synced.
	Lost
)

// Options configure a Watcher.
type Options struct {
	// Connect opens the API server for an identity and a kind. It is asked again at each attempt and should keep what it
	// makes. Required.
	Connect func(cluster.Identity, schema.GroupVersionKind) (metadata.Interface, *meta.RESTMapping, error)
	// Notify hears of changes. It is called without locks, many times in a row for many changes, and must neither wait
	// nor call Close. nil means that nobody listens.
	Notify func(owner string, ref cluster.Ref, event Event)
	// Clock times retries; nil means the real one.
	Clock clock.Clock
	// Log hears of watches that cannot be opened. The zero value is silent.
	Log logr.Logger
}

const (
	// maxSubjects is how many an owner may have watched. What it wants beyond that is a problem.
	maxSubjects = 256
	// maxSpares is how many objects of owners that do not want them are kept in all, so that such an owner can join
	// without another list.
	maxSpares = 20_000
)

// Watcher watches what owners want watched. Its methods may be called concurrently, and none of them waits for the API
// server, except Close.
type Watcher struct {
	options Options
	// subjects and spares are maxSubjects and maxSpares.
	subjects int
	spares   int64
	// lists holds a token for each list that runs, and spare counts the objects of owners that do not want them.
	lists chan struct{}
	spare atomic.Int64

	root context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	owners  map[string]owner
	watches map[Subject]*subjectWatch
}

// owner is what one installation wants.
type owner struct {
	value string
	// watches are what it wants, by the subject without the identity, of which an owner has one.
	watches map[Subject]*subjectWatch
	// beyond are the subjects that it wants and are too many.
	beyond []Subject
}

// New makes a Watcher that watches nothing yet. Close ends it.
func New(options Options) (*Watcher, error) {
	if options.Connect == nil {
		return nil, errors.New("watch: Connect is required")
	}
	if options.Notify == nil {
		options.Notify = func(string, cluster.Ref, Event) {}
	}
	options.Clock = cmp.Or[clock.Clock](options.Clock, clock.RealClock{})
	root, stop := context.WithCancel(context.Background())
	return &Watcher{
		options: options, subjects: maxSubjects, spares: maxSpares, root: root, stop: stop,
		lists:  make(chan struct{}, lists),
		owners: map[string]owner{}, watches: map[Subject]*subjectWatch{},
	}, nil
}

// Close ends every watch and waits until they are closed. Nobody is notified afterwards.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.stop()
	w.mu.Unlock()
	w.done.Wait()
}

// Want replaces what the owner wants watched, whose objects have the value in their label cluster.PartOf; an empty set
// means that the owner is gone. A subject is opened when the first owner wants it, and closed when nobody does. What State
// already knows afterwards is not announced by Synced. Of more subjects than an owner may have, the first are watched.
func (w *Watcher) Want(name, value string, set []Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.root.Err() != nil {
		return
	}
	had := w.owners[name]
	now := owner{value: value, watches: make(map[Subject]*subjectWatch, len(set))}
	for _, subject := range set {
		if len(now.watches) >= w.subjects {
			now.beyond = append(now.beyond, subject)
			continue
		}
		now.watches[Subject{GVK: subject.GVK, Namespace: subject.Namespace}] = w.open(subject, name, value)
	}
	for at, watch := range had.watches {
		if now.watches[at] != watch && watch.leave(had.value) {
			delete(w.watches, watch.subject)
		}
	}
	delete(w.owners, name)
	if len(now.watches) > 0 {
		w.owners[name] = now
	}
}

// open lets the owner join the subject's watch, and opens that if need be.
func (w *Watcher) open(subject Subject, name, value string) *subjectWatch {
	watch := w.watches[subject]
	if watch == nil {
		var ctx context.Context
		watch = newSubjectWatch(w, subject)
		ctx, watch.cancel = context.WithCancel(w.root)
		w.watches[subject] = watch
		defer w.done.Go(func() { watch.run(ctx) }) // Once the owner has joined.
	}
	watch.join(name, value)
	return watch
}

// Retry tries again now what the owner wants and cannot be watched, but each subject at most once a second: call it
// when a CRD or a right was added.
func (w *Watcher) Retry(owner string) {
	watches, _ := w.wants(owner)
	for _, watch := range watches {
		signal(watch.wake)
	}
}

// wants is a copy of what the owner wants: what is watched for it, and what is too much.
func (w *Watcher) wants(name string) (watches []*subjectWatch, beyond []Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	owner := w.owners[name]
	return slices.Collect(maps.Values(owner.watches)), owner.beyond
}
