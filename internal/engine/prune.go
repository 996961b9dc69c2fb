package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// prunable says that there are leftovers, and that they are to go.
func (r *round) prunable() bool {
	return r.in.Spec.PruneEnabled() && len(r.leftovers()) > 0
}

// leftovers are the members that no release needs any more, and that are not known to be gone.
func (r *round) leftovers() []modulesv1.Member {
	var found []modulesv1.Member
	for _, m := range r.record.Data.Members {
		if leftover(&m) && !r.removed[keyOf(&m)] {
			found = append(found, m)
		}
	}
	return found
}

// prune removes the leftovers, last stage first. All that the release needs is applied and healthy by now. Which are
// to go is written down before the first delete, and none is forgotten before it is known to be gone.
func (r *round) prune(ctx context.Context) (bool, error) {
	if r.record.Data.Attempt.Stage != modulesv1.StagePruning {
		if err := r.mayPrune(ctx); err != nil {
			return false, err
		}
		return true, r.save(ctx, func(data *modulesv1.InventoryData) {
			data.Attempt.Stage = modulesv1.StagePruning
			for i := range data.Members {
				if m := &data.Members[i]; leftover(m) {
					m.State = modulesv1.MemberDeleting
				}
			}
		})
	}
	if err := r.guardData(ctx); err != nil {
		return false, errors.Join(err, r.saveRemoved(ctx))
	}
	before := r.out.Pruned
	more, err := r.removeStage(ctx, StagePrune, modulesv1.PruneFailedReason, r.leftovers())
	if count := r.out.Pruned - before; count > 0 {
		r.note(modulesv1.PrunedReason, "removed %s no longer needed", objects(count))
	}
	return more, err
}

// mayPrune says why the leftovers may not go: they are too many, or data would go with them.
func (r *round) mayPrune(ctx context.Context) error {
	var existing, all int
	var failed []memberError
	for i := range r.record.Data.Members {
		m := &r.record.Data.Members[i]
		if m.UID == "" {
			continue
		}
		all++
		if !leftover(m) {
			continue
		}
		existing++
		if err := r.holdsUserData(ctx, m); err != nil {
			failed = append(failed, memberError{refOf(m), err})
		}
	}
	if percent := int(r.in.Spec.GetPruneMaxPercent()); existing*100 > percent*all {
		return failure.At(StagePrune, failure.Retry(modulesv1.PruneBlockedReason, fmt.Errorf(
			"%d of %s would be removed, and prune.maxPercent allows %d %%", existing, objects(all), percent)))
	}
	return joined(StagePrune, modulesv1.PruneBlockedReason, failed)
}

// guardData asks again about CRDs when nothing but what comes first in a release is left to go: objects that were not
// there when the removal began, or that were let go of since, would go with them.
func (r *round) guardData(ctx context.Context) error {
	leftovers := r.leftovers()
	var failed []memberError
	for i := range leftovers {
		m := &leftovers[i]
		if cluster.Stage(kindOf(m)) != cluster.StageDefinitions {
			return nil
		}
		if err := r.holdsUserData(ctx, m); err != nil {
			failed = append(failed, memberError{refOf(m), err})
		}
	}
	return joined(StagePrune, modulesv1.PruneBlockedReason, failed)
}

// holdsUserData says why a CRD may not go: there are objects of it, which would go with it. Leftovers that go before it
// are not meant.
func (r *round) holdsUserData(ctx context.Context, m *modulesv1.Member) error {
	if m.Group != crdGroup || m.Kind != crdKind {
		return nil
	}
	if err := r.over(ctx); err != nil {
		return err
	}
	crd, err := r.client.Get(ctx, refOf(m))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return nil
	case err != nil:
		return err
	case r.spared(m, crd):
		return nil
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	exclude := r.notUserData()
	for _, other := range r.leftovers() {
		if other.Group == group && other.Kind == kind && other.UID != "" && !r.stays(&other) {
			exclude = append(exclude, refOf(&other))
		}
	}
	found, err := r.client.Instances(ctx, group, kind, exclude...)
	if err != nil {
		return err
	}
	if found.Count > 0 {
		return fmt.Errorf("%s stays: of its kind there are %s, such as %s", describe(refOf(m)), objects(found.Count), describe(found.Examples[0]))
	}
	return nil
}

// The kind of CRDs.
const (
	crdGroup = "apiextensions.k8s.io"
	crdKind  = "CustomResourceDefinition"
)

// removal is what became of a member that is to go.
type removal struct {
	member modulesv1.Member
	// gone says that it need not be remembered any more; deleted that it was there before, spared that it still is.
	gone, deleted, spared bool
	// heir is whom it was handed over to.
	heir *heir
	err  error
}

// removeStage removes those of the members that are of the last stage, in parallel, and forgets those that are gone.
// It says whether all are, so that the stage before may follow.
func (r *round) removeStage(ctx context.Context, stage Stage, reason string, members []modulesv1.Member) (bool, error) {
	if err := r.findHeirs(ctx); err != nil {
		return false, failure.At(stage, failure.Retry(reason, err))
	}
	last := 0
	for i := range members {
		last = max(last, cluster.Stage(kindOf(&members[i])))
	}
	members = slices.DeleteFunc(slices.Clone(members), func(m modulesv1.Member) bool { return cluster.Stage(kindOf(&m)) != last })
	slices.SortFunc(members, func(a, b modulesv1.Member) int { return cmp.Compare(a.Name, b.Name) })
	removals := each(func() error { return r.over(ctx) }, r.engine.options.Parallel, members, func(m modulesv1.Member) removal { return r.remove(ctx, m) },
		func(m modulesv1.Member, err error) removal { return removal{member: m, err: err} })
	defer func() { r.out.Notes = fewer(r.out.Notes) }()
	var failed []memberError
	waiting := false
	for _, one := range removals {
		if one.deleted {
			r.out.Pruned++
		}
		if one.spared {
			r.noteSpared(&one.member)
		}
		if one.heir != nil && one.gone {
			r.noteBequest(refOf(&one.member), *one.heir)
		}
		switch {
		case one.err != nil:
			failed = append(failed, memberError{refOf(&one.member), r.withoutRights(one.err)})
		case !one.gone:
			waiting = true
			r.waitFor(refOf(&one.member), "is being deleted")
			r.again(r.goingAgain(&one.member))
		default:
			r.forget(keyOf(&one.member))
		}
	}
	err := joined(stage, reason, failed)
	if err != nil || waiting {
		// Otherwise another stage or the end follows at once, and writes down all of it.
		err = errors.Join(err, r.saveRemoved(ctx))
	}
	return err == nil && !waiting, err
}

// goingAgain is when a member that is on its way out is looked at again: the watch tells its end, if there is one.
func (r *round) goingAgain(m *modulesv1.Member) time.Duration {
	if meta, known := r.state(m); known && meta != nil && meta.Deleting {
		return watchedAgain
	}
	return goingAgain
}

// forget notes that a member is known to be gone.
func (r *round) forget(k key) {
	if r.removed == nil {
		r.removed = map[key]bool{}
	}
	r.removed[k] = true
}

// saveRemoved takes the members that are gone out of the record.
func (r *round) saveRemoved(ctx context.Context) error {
	if len(r.removed) == 0 {
		return nil
	}
	return r.save(ctx, r.shrink)
}

// shrink takes the members that are gone out of the data.
func (r *round) shrink(data *modulesv1.InventoryData) {
	data.Members = slices.DeleteFunc(data.Members, func(m modulesv1.Member) bool { return r.removed[keyOf(&m)] })
}

// remove removes one member. An object that others change meanwhile is looked at anew, for it may belong to somebody
// else by now; a webhook may refuse a deletion with the same answer as a change, so that it is not taken for one for ever.
func (r *round) remove(ctx context.Context, m modulesv1.Member) removal {
	return unchanged(func() removal { return r.removeOnce(ctx, m) })
}

// unchanged tries again, a few times, while the object has changed between two requests.
func unchanged(try func() removal) removal {
	var done removal
	for range maxTries {
		if done = try(); !errors.Is(done.err, cluster.ErrChanged) {
			break
		}
	}
	return done
}

// removeOnce removes only what is provably this installation's, and only as it was last seen.
func (r *round) removeOnce(ctx context.Context, m modulesv1.Member) removal {
	done := removal{member: m}
	to, claimed := r.heirs[keyOf(&m)]
	if meta := r.seen(&m); meta != nil && string(meta.UID) == m.UID && !r.isHome(&m) && !r.stays(&m) && !claimed {
		if meta.Deleting {
			return done
		}
		// The watch has what a look would find. If it is behind, the version says so.
		done.gone, done.err = r.client.Delete(ctx, refOf(&m), cluster.DeleteOptions{ResourceVersion: meta.ResourceVersion})
		if done.deleted = done.err == nil; !errors.Is(done.err, cluster.ErrChanged) && !errors.Is(done.err, cluster.ErrNoKind) {
			return done
		}
		done.err = nil
	}
	ref, live, err := r.find(ctx, refOf(&m))
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		done.gone = true
		return done
	case errors.Is(err, cluster.ErrNoKind):
		done.err = r.kindIsGone(ctx, &m, err)
		done.gone = done.err == nil
		return done
	case errors.Is(err, cluster.ErrForbidden) && r.session.isUnmade(&m):
		done.gone = true
		return done
	case err != nil:
		done.err = err
		return done
	case !r.owns(live, &m):
		done.gone = true
		return done
	case claimed && to.uid == live.UID && live.DeletionTimestamp == nil:
		done.err = r.bequeath(ctx, ref, live, to)
		done.gone = done.err == nil
		done.heir = &to
		return done
	case r.isHome(&m), r.spared(&m, live):
		done.err = r.spare(ctx, ref, live)
		done.gone = done.err == nil
		done.spared = done.gone
		return done
	case live.DeletionTimestamp != nil:
		return done
	}
	done.gone, done.err = r.client.Delete(ctx, withUID(ref, live.UID), cluster.DeleteOptions{ResourceVersion: live.ResourceVersion})
	done.deleted = done.err == nil
	return done
}

// find reads the metadata of whatever has the reference's name. A version that the API server has ceased to serve makes
// no difference: the reference comes back in one that it does. An object that does not fit its kind's scope is not
// there: the kind was not known when it was claimed, or its CRD was made anew with another scope.
func (r *round) find(ctx context.Context, ref cluster.Ref) (cluster.Ref, *metav1.PartialObjectMetadata, error) {
	ref.UID = ""
	live, err := r.client.Metadata(ctx, ref)
	if errors.Is(err, cluster.ErrNoKind) {
		served, unknown := r.client.Preferred(ref)
		if unknown != nil || served == ref {
			return ref, nil, err
		}
		ref = served
		live, err = r.client.Metadata(ctx, ref)
	}
	if errors.Is(err, cluster.ErrScope) {
		err = r.client.Misplaced(ctx, ref)
	}
	return ref, live, err
}

// kindIsGone says whether a kind that is not served has no objects for certain: its CRD has been deleted. Otherwise the
// answer stands.
func (r *round) kindIsGone(ctx context.Context, m *modulesv1.Member, answer error) error {
	found, err := r.client.Instances(ctx, m.Group, m.Kind)
	switch {
	case err != nil:
		return err
	case found.Count > 0:
		return answer
	}
	return nil
}

// isHome says that the member is the namespace of the installation itself. It would take the installation's own record
// with it, and whatever else is there, so it is let go of instead.
func (r *round) isHome(m *modulesv1.Member) bool {
	return m.Group == "" && m.Kind == "Namespace" && m.Name == r.in.Namespace
}

func withUID(ref cluster.Ref, uid types.UID) cluster.Ref {
	ref.UID = uid
	return ref
}
