package watch

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"sluice.dev/sluice/internal/engine/cluster"
)

// subjectWatch is one watch and what it has seen.
type subjectWatch struct {
	watcher *Watcher
	subject Subject
	cancel  context.CancelFunc
	// wake ends a pause, again asks for another list. Both hold one signal.
	wake, again chan struct{}
	// paged is the watch's own: whether lists are asked for in pages.
	paged bool

	mu     sync.Mutex
	closed bool
	synced bool
	// problem is why the subject cannot be watched.
	problem *Problem
	// owners are the names of those that want the subject, by the value of their label; waiting are those of them that
	// need another list first.
	owners  map[string]string
	waiting sets.Set[string]
	objects map[string]*Meta
	// ended are Jobs that ended well, and went when their time to live was over.
	ended map[string]types.UID
	// spare counts the objects that no owner here has. Missed says that some of these were not kept.
	spare  int
	missed bool
}

// notice is a call of Options.Notify.
type notice struct {
	owner string
	ref   cluster.Ref
	event Event
}

func newSubjectWatch(watcher *Watcher, subject Subject) *subjectWatch {
	return &subjectWatch{
		watcher: watcher, subject: subject, paged: true,
		wake: make(chan struct{}, 1), again: make(chan struct{}, 1),
		owners: map[string]string{}, waiting: sets.New[string](),
		objects: map[string]*Meta{}, ended: map[string]types.UID{},
	}
}

// State is what is known of an object that the owner wants watched, without a request. It is not known until the
// subject has been listed, nor while it cannot be watched. nil, true says that no object of that name is there, or that
// it does not carry the owner's label.
func (w *Watcher) State(owner string, ref cluster.Ref) (found *Meta, known bool) {
	members, value := w.find(owner, ref)
	if members == nil {
		return nil, false
	}
	return members.state(value, ref.Name)
}

// Ended says that the object of the reference's UID was a Job that ended well, had a time to live, and is gone since.
func (w *Watcher) Ended(owner string, ref cluster.Ref) bool {
	members, _ := w.find(owner, ref)
	if members == nil {
		return false
	}
	members.mu.Lock()
	defer members.mu.Unlock()
	return ref.UID != "" && members.ended[ref.Name] == ref.UID
}

// find gives the watch that sees the object for the owner, if there is one.
func (w *Watcher) find(name string, ref cluster.Ref) (members *subjectWatch, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	owner := w.owners[name]
	return owner.watches[Subject{GVK: ref.GVK, Namespace: ref.Namespace}], owner.value
}

func (s *subjectWatch) state(value, name string) (found *Meta, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || s.waiting.Has(value) {
		return nil, false
	}
	found = s.objects[name]
	if found != nil && found.PartOf != value {
		return nil, true
	}
	return found, true
}

// Wrote remembers the answer to a write of a member, so that State does not lag behind it, and the event of
// the write itself wakes nobody. It does nothing when something newer is known, or nothing at all.
func (w *Watcher) Wrote(owner string, ref cluster.Ref, written cluster.Seen) {
	members, value := w.find(owner, ref)
	if members == nil {
		return
	}
	members.mu.Lock()
	defer members.mu.Unlock()
	old := members.objects[ref.Name]
	// The answer to a write that changed nothing can say more than is known all the same.
	if !members.synced || members.closed || old != nil && old.Version() != written.Version() && !newer(written.ResourceVersion, old.ResourceVersion) {
		return
	}
	now := &Meta{Seen: written, PartOf: value}
	if old != nil && old.UID == now.UID {
		now.Ignored, now.Ended = old.Ignored, old.Ended
	}
	members.keep(ref.Name, now)
}

// change takes an event of the stream.
func (s *subjectWatch) change(object *metav1.PartialObjectMetadata, gone bool) []notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := remember(object)
	old := s.objects[object.Name]
	if s.closed || old != nil && newer(old.ResourceVersion, now.ResourceVersion) {
		return nil
	}
	if gone {
		return s.remove(object.Name)
	}
	return s.replace(object.Name, now)
}

// commit takes a list, and the version it is of.
func (s *subjectWatch) commit(listed map[string]*Meta, version string) []notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	fresh := s.waiting
	if !s.synced {
		fresh = sets.KeySet(s.owners)
	}
	s.missed, s.waiting = false, fresh
	var notices []notice
	for name, old := range s.objects {
		if listed[name] == nil && !newer(old.ResourceVersion, version) {
			notices = append(notices, s.remove(name)...)
		}
	}
	for name, now := range listed {
		if old := s.objects[name]; old == nil || !newer(old.ResourceVersion, now.ResourceVersion) {
			notices = append(notices, s.replace(name, now)...)
		}
	}
	s.synced, s.problem, s.waiting = true, nil, sets.New[string]()
	return append(notices, s.announce(Synced, fresh)...)
}

// fail takes an error that leaves the subject unknown, or as it was seen last if the API server is merely away.
func (s *subjectWatch) fail(err error) {
	problem := problemOf(s.subject, err)
	s.mu.Lock()
	if s.closed || s.synced && problem.Reason == Unreachable {
		s.mu.Unlock()
		return
	}
	news := s.problem == nil || s.problem.Reason != problem.Reason
	s.problem, s.synced = problem, false
	clear(s.waiting)
	s.missed = false
	for name := range s.objects {
		s.drop(name)
	}
	var notices []notice
	if news {
		notices = s.announce(Lost, sets.KeySet(s.owners))
	}
	s.mu.Unlock()
	if news {
		s.watcher.options.Log.Info("watch cannot be opened", "kind", s.subject.GVK.String(), "namespace", s.subject.Namespace,
			"identity", s.subject.Identity.String(), "reason", problem.Reason, "message", problem.Message)
	}
	s.tell(notices)
}

func (s *subjectWatch) announce(event Event, values sets.Set[string]) []notice {
	notices := make([]notice, 0, len(values))
	ref := cluster.Ref{GVK: s.subject.GVK, Namespace: s.subject.Namespace}
	for value := range values {
		if owner, wants := s.owners[value]; wants {
			notices = append(notices, notice{owner, ref, event})
		}
	}
	return notices
}

// tell calls Notify. The lock must not be held.
func (s *subjectWatch) tell(notices []notice) {
	for _, one := range notices {
		if s.watcher.root.Err() != nil {
			return
		}
		s.watcher.options.Notify(one.owner, one.ref, one.event)
	}
}

func (s *subjectWatch) trouble() *Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}
