package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// chooseDeletion chooses for an installation that is to go, by the record: the release's template may be gone.
func (r *round) chooseDeletion() action {
	if r.record == nil {
		return action{"done", r.done}
	}
	data := &r.record.Data
	r.out.Deletion.Mode = cmp.Or(r.out.Deletion.Mode, r.mode()) // It may have turned to Orphan.
	switch {
	case r.out.Deletion.Mode == modulesv1.DeletionOrphan && data.Phase != modulesv1.PhaseOrphaning:
		return action{"orphan-begin", r.enter(modulesv1.PhaseOrphaning)}
	case r.out.Deletion.Mode == modulesv1.DeletionOrphan && len(r.remaining()) > 0:
		return action{"orphan", r.removeRemaining}
	case r.out.Deletion.Mode == modulesv1.DeletionOrphan:
		return action{"forget", r.forgetRecord}
	case !r.did["block"] && (!r.homeless || len(r.remaining()) > 0):
		return action{"block", r.block}
	case data.Phase != modulesv1.PhaseDeleting:
		return action{"delete-begin", r.enter(modulesv1.PhaseDeleting)}
	case !r.did["delete-default-config"] && r.leavesDefaultConfig():
		return action{"delete-default-config", r.deleteDefaultConfig}
	case len(r.remaining()) > 0:
		return action{"delete", r.removeRemaining}
	}
	return action{"forget", r.forgetRecord}
}

// mode is the installation's own, else the recorded one of its release.
func (r *round) mode() modulesv1.DeletionMode {
	recorded := cmp.Or(r.record.Data.Deletion, &modulesv1.RecordedDeletion{})
	return cmp.Or(r.in.Spec.GetDeletionMode(), recorded.Mode, modulesv1.DeletionBlock)
}

// remaining are the members that are not known to be gone.
func (r *round) remaining() []modulesv1.Member {
	return slices.DeleteFunc(slices.Clone(r.record.Data.Members), func(m modulesv1.Member) bool {
		_, gone := r.removed[keyOf(&m)]
		return gone
	})
}

// enter writes down that the end has begun, before anything is taken away.
func (r *round) enter(phase modulesv1.Phase) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		// Whoever finds the phase takes what is needed no more; who came before it left a claim.
		r.heirs = nil
		return true, r.save(ctx, func(data *modulesv1.InventoryData) {
			data.Phase, data.Attempt = phase, nil
			if phase != modulesv1.PhaseDeleting {
				return
			}
			for i := range data.Members {
				// A record with room for this has none for what no deletion asks for.
				m := &data.Members[i]
				m.State, m.Claimed, m.Ended = modulesv1.MemberDeleting, false, false
			}
		})
	}
}

// removeRemaining removes the members, the last stage first, and each stage only once the one after it is gone, or lets
// go of all: nothing on them says any more that they were members then. One that cannot be written, for want of rights
// or because its kind is not served, is let go of with its labels on once that has lasted: nothing is asked of it but
// to stay.
func (r *round) removeRemaining(ctx context.Context) (bool, error) {
	return r.removeStage(ctx, StageDelete, modulesv1.DeletionFailedReason, r.remaining())
}

// forgetRecord removes the Inventory, once nothing in it is left.
func (r *round) forgetRecord(ctx context.Context) (bool, error) {
	mode, count, left := r.out.Deletion.Mode, len(r.record.Data.Members), r.record.DeepCopy()
	r.shrink(&left.Data)
	if err := r.engine.parts.Records.Delete(ctx, r.record); err != nil {
		return false, failure.At(StageRecord, err)
	}
	r.record = nil
	switch {
	case mode == modulesv1.DeletionOrphan:
		r.out.note(modulesv1.OrphanedReason, "let go of %s", objects(count))
	case left.Data.LetGo > 0:
		r.out.note(modulesv1.UninstalledReason, "removed all objects, apart from %d that were let go of", left.Data.LetGo)
	default:
		r.out.note(modulesv1.UninstalledReason, "removed all objects")
	}
	return true, nil
}

// done ends it: nothing is remembered of the installation any more.
func (r *round) done(context.Context) (bool, error) {
	r.out.Done = true
	r.engine.Forget(r.key) //nolint:contextcheck // Nothing is asked of the API server.
	return false, nil
}

// leaveHome counts members in a namespace that is being deleted as gone, if it is the installation's own: they are the
// namespace controller's to remove, and the rights to do it here go with the namespace's RoleBindings. Without that
// the installation would keep the namespace, and the namespace the installation. It is asked as the controller: that a
// namespace goes is nobody's content. Where that cannot be found out, it is not taken for granted.
func (r *round) leaveHome(ctx context.Context) {
	system, err := r.engine.parts.Connector.As(cluster.Identity{})
	if err != nil {
		return
	}
	home := cluster.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: r.in.Namespace}
	live, err := system.Metadata(ctx, home)
	if err != nil || live.DeletionTimestamp == nil {
		return
	}
	r.homeless = true
	for m := range every(r.record.Data.Members) {
		if m.Namespace == r.in.Namespace || r.recordedFacts(m).home {
			r.removed[keyOf(m)] = goes
		}
	}
}

// isOutOfReach says that a deletion can do nothing about an object, by the error, for as long as nobody grants rights, or
// brings its kind back where it only has to let go.
func (r *round) isOutOfReach(err error) bool {
	return r.in.Deleting && (errors.Is(err, cluster.ErrForbidden) || errors.Is(err, cluster.ErrNoKind) && r.out.Deletion.Mode == modulesv1.DeletionOrphan)
}

// withoutRights says what helps where rights are missing for a deletion, and what becomes of it without them.
func (r *round) withoutRights(err error) error {
	if !r.isOutOfReach(err) {
		return err
	}
	r.deprived = true
	left := r.in.patience()
	if since := r.record.Data.DeprivedSince; since != nil {
		left -= r.engine.clock.Now().Sub(since.Time)
	}
	if left > 0 {
		r.out.again(left)
	}
	const end = "what is left once this has lasted for spec.timeout, and for a minute at least, is let go of"
	if r.homeless {
		return fmt.Errorf("%w; the installation's namespace is being deleted, and rights that were bound in it are gone: bind them outside of it, or remove the object by hand; %s", err, end)
	}
	return fmt.Errorf("%w; %s", err, end)
}

// lapsed says that rights have been missing for so long that they are taken for gone, together with the installation.
func (r *round) lapsed() bool {
	since := r.record.Data.DeprivedSince
	return since != nil && !r.engine.clock.Now().Before(since.Add(r.in.patience()))
}

// noteRights writes down since when rights are missing without a break.
func (r *round) noteRights(ctx context.Context) error {
	if !r.in.Deleting || r.record == nil || r.deprived == (r.record.Data.DeprivedSince != nil) {
		return nil
	}
	return r.save(ctx, func(data *modulesv1.InventoryData) {
		data.DeprivedSince = nil
		if r.deprived {
			data.DeprivedSince = &metav1.Time{Time: r.engine.clock.Now()}
		}
	})
}
