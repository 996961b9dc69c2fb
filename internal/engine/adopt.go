package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// treasured says that objects of the kind hold what nobody can bring back: others' objects, or users' data.
func (r *round) treasured(kind schema.GroupKind) bool {
	return holdsContent(kind) || slices.Contains(r.managed(), kind)
}

// spared says that a member is let go of where others are deleted: somebody else made it, and more would go with it than
// what this installation brought. What was applied and not written down before a crash is told by the object itself.
func (r *round) spared(m *modulesv1.Member, live metav1.Object) bool {
	if !r.treasured(kindOf(m).GroupKind()) {
		return false
	}
	return m.Adopted || m.UID != string(live.GetUID()) && !cluster.MadeBy(live, r.manager())
}

// stays says that a removal lets go of the member, as far as the record tells.
func (r *round) stays(m *modulesv1.Member) bool {
	return m.Adopted && r.treasured(kindOf(m).GroupKind())
}

// recognise takes the UIDs of members that this installation created, and did not come to write down, into the
// members: once they are applied with other values, they do not tell any more.
func (r *round) recognise(ctx context.Context, members []modulesv1.Member, made *render) error {
	var failed []memberError
	for i := range members {
		m := &members[i]
		if m.UID != "" || !made.keys[keyOf(m)] || !r.treasured(kindOf(m).GroupKind()) {
			continue
		}
		if r.over(ctx) != nil {
			return late(StageApply)
		}
		_, live, err := r.find(ctx, refOf(m))
		switch {
		case errors.Is(err, cluster.ErrNotFound), errors.Is(err, cluster.ErrNoKind):
		case err != nil:
			failed = append(failed, memberError{refOf(m), err})
		case r.owns(live, m) && cluster.MadeBy(live, r.manager()):
			m.UID = string(live.UID)
		}
	}
	return joined(StageApply, modulesv1.ApplyFailedReason, failed)
}

// spare lets go of a member: nothing on it says any more that it was one.
func (r *round) spare(ctx context.Context, ref cluster.Ref, live *metav1.PartialObjectMetadata) error {
	return r.client.Release(ctx, ref, live, r.manager(), ours())
}

// noteSpared tells what stays.
func (r *round) noteSpared(m *modulesv1.Member) {
	why := "it was there before"
	if r.isHome(m) {
		why = "it is the installation's own namespace"
	}
	r.out.Notes = append(r.out.Notes, Note{
		Reason: modulesv1.OrphanedReason, Message: bounded(fmt.Sprintf("let go of %s, which is not deleted: %s", describe(refOf(m)), why)),
	})
}
