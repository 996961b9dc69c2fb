package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/watch"
)

// state is what the watch knows of a member.
func (r *round) state(m *modulesv1.Member) (found *watch.Meta, known bool) {
	return r.engine.parts.Watcher.State(r.in.Key(), refOf(m))
}

// seen is what the watch has of a member that carries this installation's label; nil when it has nothing.
func (r *round) seen(m *modulesv1.Member) *watch.Meta {
	if m == nil {
		return nil
	}
	if meta, _ := r.state(m); meta != nil && meta.PartOf == r.id {
		return meta
	}
	return nil
}

// hasDrifted says that the watch sees a member otherwise than it was applied.
func (r *round) hasDrifted(m *modulesv1.Member, meta *watch.Meta) bool {
	switch {
	case meta == nil:
		return true
	case meta.Deleting:
		// It goes whatever is applied to it. Its end is another event.
		return false
	}
	return string(meta.UID) != m.UID || meta.PartOf != r.id || meta.Fingerprint(r.manager) != m.Fingerprint
}

// ended says that a member is a Job that ended well, and that its ttlSecondsAfterFinished has removed, or will. That it
// is gone is no drift then: it has run for this release.
func (r *round) ended(m *modulesv1.Member) bool {
	if kindOf(m).GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	if meta := r.seen(m); meta != nil {
		return meta.Ended && string(meta.UID) == m.UID
	}
	return m.Ended || r.engine.parts.Watcher.Ended(r.in.Key(), refOf(m))
}

// gone says that a member is a Job that has ended, and is gone, or not known to be there still.
func (r *round) gone(m *modulesv1.Member) bool { return r.seen(m) == nil && r.ended(m) }

// blind are the members whose watch cannot be opened. Those whose watch is only not ready yet are not among them.
func (r *round) blind() map[key]bool {
	problems := r.engine.parts.Watcher.Problems(r.in.Key())
	if len(problems) == 0 {
		return nil
	}
	unseen := make(map[watch.Subject]bool, len(problems))
	for _, problem := range problems {
		unseen[problem.Subject] = true
	}
	blind := map[key]bool{}
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; wanted(m) && unseen[r.subject(m)] {
			blind[keyOf(m)] = true
		}
	}
	return blind
}

// unwatched tells why members cannot be watched.
func (r *round) unwatched() []Problem {
	var told []Problem
	for _, problem := range r.engine.parts.Watcher.Problems(r.in.Key()) {
		told = append(told, Problem{Ref: cluster.Ref{GVK: problem.Subject.GVK, Namespace: problem.Subject.Namespace}, Message: problem.Message})
	}
	return told
}

// watch asks for the watches that the members need.
func (r *round) watch() {
	set := map[watch.Subject]bool{}
	for _, m := range r.record.Data.Members {
		set[r.subject(&m)] = true
	}
	r.engine.parts.Watcher.Want(r.in.Key(), r.manager, slices.SortedFunc(maps.Keys(set), watch.Subject.Compare))
}

// subject is what has to be watched for a member.
func (r *round) subject(m *modulesv1.Member) watch.Subject {
	return watch.Subject{Identity: r.in.Identity, GVK: kindOf(m), Namespace: m.Namespace}
}

// wrote tells the watcher what the API server answered, so that the event of the write is no news.
func (r *round) wrote(o object, applied cluster.Applied) {
	r.engine.parts.Watcher.Wrote(r.in.Key(), refOfObject(o.Unstructured), r.manager, applied)
}
