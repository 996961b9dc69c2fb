package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
)

// sight is what is seen of an installation's members without a request: what the watches have of them.
type sight struct {
	// watcher is nil for an engine that has none: then nothing is seen.
	watcher  *watch.Watcher
	identity cluster.Identity
	// key names the installation to the watcher; id and manager are its InstallationID and Manager.
	key, id, manager string
}

// state is what the watch knows of a member.
func (s sight) state(m *modulesv1.Member) (found *watch.Meta, known bool) {
	if s.watcher == nil {
		return nil, false
	}
	return s.watcher.State(s.key, refOf(m))
}

// seen is what the watch has of a member that carries this installation's label; nil when it has nothing.
func (s sight) seen(m *modulesv1.Member) *watch.Meta {
	if m == nil {
		return nil
	}
	if meta, _ := s.state(m); meta != nil && meta.PartOf == s.id {
		return meta
	}
	return nil
}

// hasDrifted says that the watch sees a member otherwise than it was applied.
func (s sight) hasDrifted(m *modulesv1.Member, meta *watch.Meta) bool {
	switch {
	case meta == nil:
		return true
	case meta.Deleting:
		// It goes whatever is applied to it. Its end is another event.
		return false
	}
	return string(meta.UID) != m.UID || meta.PartOf != s.id || meta.Fingerprint != m.Fingerprint
}

// ended says that a member is a Job that ended well, and that its ttlSecondsAfterFinished has removed, or will. That it
// is gone is no drift then: it has run for this release.
func (s sight) ended(m *modulesv1.Member) bool {
	if kindOf(m).GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	if meta := s.seen(m); meta != nil {
		return meta.Ended && string(meta.UID) == m.UID
	}
	return m.Ended || s.watcher.Ended(s.key, refOf(m))
}

// gone says that a member is a Job that has ended, and is gone, or not known to be there still.
func (s sight) gone(m *modulesv1.Member) bool { return s.seen(m) == nil && s.ended(m) }

// blind are the members whose watch cannot be opened. Those whose watch is only not ready yet are not among them.
func (s sight) blind(members []modulesv1.Member) map[key]bool {
	problems := s.watcher.Problems(s.key)
	if len(problems) == 0 {
		return nil
	}
	unseen := make(map[watch.Subject]bool, len(problems))
	for _, problem := range problems {
		unseen[problem.Subject] = true
	}
	blind := map[key]bool{}
	for m := range every(members) {
		if wanted(m) && unseen[s.subject(m)] {
			blind[keyOf(m)] = true
		}
	}
	return blind
}

// unwatched tells why members cannot be watched.
func (s sight) unwatched() []Problem {
	var told []Problem
	for _, problem := range s.watcher.Problems(s.key) {
		told = append(told, Problem{Ref: cluster.Ref{GVK: problem.Subject.GVK, Namespace: problem.Subject.Namespace}, Message: problem.Message})
	}
	return told
}

// watch asks for the watches that the members need.
func (s sight) watch(members []modulesv1.Member) {
	set := map[watch.Subject]bool{}
	for m := range every(members) {
		set[s.subject(m)] = true
	}
	s.watcher.Want(s.key, s.id, slices.SortedFunc(maps.Keys(set), watch.Subject.Compare))
}

// subject is what has to be watched for a member.
func (s sight) subject(m *modulesv1.Member) watch.Subject {
	return watch.Subject{Identity: s.identity, GVK: kindOf(m), Namespace: m.Namespace}
}

// wrote tells the watcher what the API server answered, so that the event of the write is no news.
func (s sight) wrote(o object, applied cluster.Applied) {
	s.watcher.Wrote(s.key, refOfObject(o.Unstructured), applied.Seen)
}
