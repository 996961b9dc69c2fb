package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	r.out.Deletion.Mode = r.mode()
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
		return action{"delete", r.delete}
	}
	return action{"forget", r.forgetRecord}
}

// mode is the installation's own, else the recorded one of its release.
func (r *round) mode() modulesv1.DeletionMode {
	if r.unentitled {
		return modulesv1.DeletionOrphan
	}
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

// delete removes the members, the last stage first, and each stage only once the one after it is gone.
func (r *round) delete(ctx context.Context) (bool, error) {
	r.watch() //nolint:contextcheck // Watches outlive the round that asks for them.
	return r.removeRemaining(ctx)
}

// removeRemaining removes members, or lets go of all: nothing on them says any more that they were members then. One that
// cannot be written, for want of rights or because its kind is not served, is let go of with its labels on once that has
// lasted: nothing is asked of it but to stay.
func (r *round) removeRemaining(ctx context.Context) (bool, error) {
	return r.removeStage(ctx, StageDelete, modulesv1.DeletionFailedReason, r.remaining())
}

// isOutOfReach says that a deletion can do nothing about an object, by the error, for as long as nobody grants rights, or
// brings its kind back where it only has to let go.
func (r *round) isOutOfReach(err error) bool {
	return r.in.Deleting && (errors.Is(err, cluster.ErrForbidden) || errors.Is(err, cluster.ErrNoKind) && r.out.Deletion.Mode == modulesv1.DeletionOrphan)
}

// leavesDefaultConfig says that a default configuration was created, and does not go with the installation's namespace.
func (r *round) leavesDefaultConfig() bool {
	made := r.record.Data.DefaultConfigCreated
	return made != nil && !made.Found && (!r.homeless || made.Namespace != r.in.Namespace)
}

// deleteDefaultConfig removes the default configuration while what acts on it is still there.
func (r *round) deleteDefaultConfig(ctx context.Context) (gone bool, err error) {
	for range maxTries {
		if gone, err = r.deleteDefaultConfigOnce(ctx); !errors.Is(err, cluster.ErrChanged) {
			break
		}
	}
	if errors.Is(err, cluster.ErrForbidden) && r.lapsed() {
		r.warn(modulesv1.OrphanedReason, "let go of the default configuration: %v", err)
		return true, nil
	}
	return gone, r.withoutRights(err)
}

func (r *round) deleteDefaultConfigOnce(ctx context.Context) (bool, error) {
	made := r.record.Data.DefaultConfigCreated
	ref, live, err := find(ctx, r.client, refOfCreated(made))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return true, nil
	case errors.Is(err, cluster.ErrNoKind):
		return true, failure.At(StageDelete, kindIsGone(ctx, r.client, ref.GVK.GroupKind(), err))
	case err != nil:
		return false, joined(StageDelete, modulesv1.DeletionFailedReason, []memberError{{ref, err}})
	case made.UID != "" && string(live.UID) != made.UID, made.UID == "" && live.Annotations[DefaultConfigAnnotation] != r.in.UID:
		return true, nil
	}
	var what fate
	var why string
	removal, err := r.removal(ctx)
	if err == nil {
		what, why, err = removal.judge(ctx, configFacts(ref.GVK.GroupKind(), live), ref, live)
	}
	if err == nil && what != goes {
		r.note(modulesv1.OrphanedReason, "let go of the default configuration %s, which is not deleted: %s", describe(ref), why)
		return true, r.save(ctx, func(data *modulesv1.InventoryData) {
			data.DefaultConfigCreated.UID, data.DefaultConfigCreated.Found = "", true
			data.LetGo++
		})
	}
	gone := false
	if err == nil && live.DeletionTimestamp == nil {
		gone, err = r.client.Delete(ctx, withUID(ref, live.UID), cluster.DeleteOptions{ResourceVersion: live.ResourceVersion})
	}
	if err != nil {
		return false, joined(StageDelete, modulesv1.DeletionFailedReason, []memberError{{ref, err}})
	}
	if !gone {
		r.waitFor(ref, "is being deleted")
		r.again(goingAgain)
	}
	return gone, nil
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
		r.note(modulesv1.OrphanedReason, "let go of %s", objects(count))
	case left.Data.LetGo > 0:
		r.note(modulesv1.UninstalledReason, "removed all objects, apart from %d that were let go of", left.Data.LetGo)
	default:
		r.note(modulesv1.UninstalledReason, "removed all objects")
	}
	return true, nil
}

// done ends it: nothing is remembered of the installation any more.
func (r *round) done(context.Context) (bool, error) {
	r.out.Done = true
	r.engine.Forget(r.in.Key()) //nolint:contextcheck // Nothing is asked of the API server.
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
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; m.Namespace == r.in.Namespace || r.recordedFacts(m).home {
			r.removed[keyOf(m)] = goes
		}
	}
}

// withoutRights says what helps where rights are missing for a deletion, and what becomes of it without them.
func (r *round) withoutRights(err error) error {
	if !r.isOutOfReach(err) {
		return err
	}
	r.deprived = true
	left := r.patience()
	if since := r.record.Data.DeprivedSince; since != nil {
		left -= r.engine.clock.Now().Sub(since.Time)
	}
	if left > 0 {
		r.again(left)
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
	return since != nil && !r.engine.clock.Now().Before(since.Add(r.patience()))
}

// patience is how long a deletion waits for rights.
func (r *round) patience() time.Duration { return max(r.in.Spec.GetTimeout(), time.Minute) }

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
