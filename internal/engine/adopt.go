package engine

import (
	"context"
	"errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// recognise takes the UIDs of members that this installation created, and did not come to write down, into the
// members: once they are applied with other values, they do not tell any more.
func (r *round) recognise(ctx context.Context, members []modulesv1.Member, made *render) error {
	var failed []memberError
	for i := range members {
		m := &members[i]
		if m.UID != "" || !made.keys[keyOf(m)] || r.memory.isUnmade(m) {
			continue
		}
		if r.over(ctx) != nil {
			return late(StageApply)
		}
		_, live, err := find(ctx, r.client, refOf(m))
		switch {
		case errors.Is(err, cluster.ErrNotFound), errors.Is(err, cluster.ErrNoKind):
		case err != nil:
			failed = append(failed, memberError{refOf(m), err})
		case r.owns(live, m) && cluster.MadeBy(live, r.manager):
			m.UID = string(live.UID)
		}
	}
	return joined(StageApply, modulesv1.ApplyFailedReason, failed)
}
