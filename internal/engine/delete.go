package engine

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// chooseDeletion chooses for an installation that is to go. It goes by what the record says, not by the release's
// template, which may be gone.
func (r *round) chooseDeletion() action {
	if r.record == nil {
		return action{"done", r.done}
	}
	data := &r.record.Data
	r.out.Mode = r.mode()
	if r.unentitled {
		r.out.Mode = modulesv1.DeletionOrphan
	}
	switch {
	case r.out.Mode == modulesv1.DeletionOrphan && data.Phase != modulesv1.PhaseOrphaning:
		return action{"orphan-begin", r.enter(modulesv1.PhaseOrphaning)}
	case r.out.Mode == modulesv1.DeletionOrphan && len(r.remaining()) > 0:
		return action{"orphan", r.orphan}
	case r.out.Mode == modulesv1.DeletionOrphan:
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
	if own := r.in.Spec.GetDeletionMode(); own != "" {
		return own
	}
	if recorded := r.record.Data.Deletion; recorded != nil && recorded.Mode != "" {
		return recorded.Mode
	}
	return modulesv1.DeletionBlock
}

// remaining are the members that are not known to be gone.
func (r *round) remaining() []modulesv1.Member {
	var found []modulesv1.Member
	for _, m := range r.record.Data.Members {
		if _, gone := r.removed[keyOf(&m)]; !gone {
			found = append(found, m)
		}
	}
	return found
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
				data.Members[i].State = modulesv1.MemberDeleting
			}
		})
	}
}

// delete removes the members, the last stage first, and each stage only once the one after it is gone.
func (r *round) delete(ctx context.Context) (bool, error) {
	r.watch() //nolint:contextcheck // Watches outlive the round that asks for them.
	return r.removeStage(ctx, StageDelete, modulesv1.DeletionFailedReason, r.remaining())
}

// leavesDefaultConfig says that a default configuration was created, and does not go with the installation's namespace.
func (r *round) leavesDefaultConfig() bool {
	made := r.record.Data.DefaultConfigCreated
	return made != nil && !made.Found && (!r.homeless || made.Namespace != r.in.Namespace)
}

// deleteDefaultConfig removes the default configuration while what acts on it is still there. One that somebody made
// anew in its place is not it.
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
		return true, failure.At(StageDelete, kindIsGone(ctx, r.client, schema.GroupKind{Group: made.Group, Kind: made.Kind}, err))
	case err != nil:
		return false, joined(StageDelete, modulesv1.DeletionFailedReason, []memberError{{ref, err}})
	case made.UID != "" && string(live.UID) != made.UID, made.UID == "" && live.Annotations[DefaultConfigAnnotation] != r.in.UID:
		return true, nil
	}
	what, why, err := r.judgeDefaultConfig(ctx, ref, live)
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

// judgeDefaultConfig finds out what becomes of the default configuration.
func (r *round) judgeDefaultConfig(ctx context.Context, ref cluster.Ref, live *metav1.PartialObjectMetadata) (fate, string, error) {
	removal, err := r.removal(ctx)
	if err != nil {
		return held, "", err
	}
	return removal.judge(ctx, configFacts(ref.GVK.GroupKind(), live), ref, live)
}

// forgetRecord removes the Inventory, once nothing in it is left.
func (r *round) forgetRecord(ctx context.Context) (bool, error) {
	mode, count, stayed := r.out.Mode, len(r.record.Data.Members), r.letGoCount()
	if err := r.engine.parts.Records.Delete(ctx, r.record); err != nil {
		return false, failure.At(StageRecord, err)
	}
	r.record = nil
	if mode == modulesv1.DeletionOrphan {
		r.note(modulesv1.OrphanedReason, "let go of %s", objects(count))
	} else if stayed > 0 {
		r.note(modulesv1.UninstalledReason, "removed all objects, apart from %d that were let go of", stayed)
	} else {
		r.note(modulesv1.UninstalledReason, "removed all objects")
	}
	return true, nil
}

// done ends it: nothing is remembered of the installation any more.
func (r *round) done(context.Context) (bool, error) {
	r.out.Done = true
	r.engine.Forget(r.key) //nolint:contextcheck // Nothing is asked of the API server.
	return false, nil
}
