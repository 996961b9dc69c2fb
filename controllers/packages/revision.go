package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/status"
)

// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagerevisions/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagerevisions/finalizers,verbs=update

// revisions makes PackageRevision a kernel.Kind: what Git has of a change or revision, and what people want of it.
type revisions struct{ shared Shared }

var (
	_ kernel.Kind[*packagesv1.PackageRevision, *sight]  = (*revisions)(nil)
	_ kernel.Owner[*packagesv1.PackageRevision, *sight] = (*revisions)(nil)
	_ kernel.Forgetter                                  = (*revisions)(nil)
)

// sight is what came of one look at a revision.
type sight struct {
	// seen is the revision as Git has it; nil if it has not.
	seen *pkgrepo.Revision
	// conflicts are those of the open change.
	conflicts pkgrepo.Conflicts
	artifact  *meta.Artifact
	progress  string
	done      *outcome
	// lags says that the spec still asks for what was reported last, and could not be made to follow Git: as long as it cannot,
	// that stays reported.
	lags bool
	// expired says why an approval to remove something was taken back; empty if none was in this round.
	expired string
}

// setupRevision adds the controller of PackageRevision objects to the manager.
func setupRevision(mgr ctrl.Manager, shared Shared, backoff *kernel.Backoff) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("packagerevision").
		For(&packagesv1.PackageRevision{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		Watches(&packagesv1.PackageVariant{}, handler.EnqueueRequestsFromMapFunc(changesOf), builder.WithPredicates(conflictsMoved())).
		WatchesRawSource(ctrlsource.Func(shared.revisions.Start)).
		WatchesRawSource(ctrlsource.Channel(shared.Rebuild, &handler.EnqueueRequestForObject{})).
		WithOptions(shared.ControllerOptions(backoff)).
		Complete(kernel.New(shared.Shell, &revisions{shared: shared}, packagesv1.RevisionFinalizer, backoff))
}

// New implements kernel.Kind.
func (*revisions) New() *packagesv1.PackageRevision { return &packagesv1.PackageRevision{} }

// View implements kernel.Kind.
func (*revisions) View(obj *packagesv1.PackageRevision) kernel.View {
	return kernel.View{
		Unreadable: obj.UnreadableStatus, Interval: obj.GetRequeueAfter(),
		ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind.
func (*revisions) Table() status.Table {
	return status.Table{Facts: []string{packagesv1.GatesMetCondition, packagesv1.ArtifactInStorageCondition, packagesv1.ApprovedCondition}}
}

// Forget implements kernel.Forgetter.
func (k *revisions) Forget(key client.ObjectKey) { k.shared.desk.forget(orderer{ofRevision, key}) }

// Work implements kernel.Kind: it looks what Git has, and orders what is asked for.
func (k *revisions) Work(ctx context.Context, obj *packagesv1.PackageRevision, _ kernel.Announce) (*sight, error) {
	s := &sight{}
	if obj.Undecodable != "" {
		return s, failure.Stall(packagesv1.InvalidSpecReason, errors.New(obj.Undecodable))
	}
	m, err := k.shared.repository(ctx, in(obj, obj.Spec.Repository))
	switch {
	case err != nil && unlessGone(err) == nil:
		return s, k.abandon(ctx, obj, err)
	case err != nil:
		return s, k.unread(ctx, obj, s, err)
	}
	if err := m.checkKnown(obj.Spec.Package); err != nil {
		return s, err
	}
	if s.seen = k.find(obj, m); s.seen == nil {
		return s, failure.Wait(packagesv1.GoneReason, 0, fmt.Errorf("repository %s has no %s of package %s; this object goes", obj.Spec.Repository, obj.Spec.Workspace, obj.Spec.Package))
	}
	if s.conflicts, err = k.conflicts(ctx, obj, m, s.seen); err != nil {
		return s, err
	}
	asked, seen := obj.Spec.GetLifecycle(), packagesv1.Lifecycle(s.seen.Lifecycle)
	follows := asked != seen && (isStale(obj, seen) || isExpired(obj))
	if follows {
		// Whatever fails later, nobody is to take the old wish for one that is against what Git has now.
		if err := k.follow(ctx, obj, seen); err != nil {
			s.lags = true
			return s, err
		}
	}
	if err := m.refusesWrites(); err != nil && (asked != seen || !isPublished(s.seen)) {
		return s, errors.Join(err, k.shared.Pipeline.Store.Delete(ctx, stored(obj)))
	}
	if err := k.publish(ctx, obj, m, s); err != nil || follows || asked == seen {
		return s, err
	}
	return s, k.carryOut(ctx, obj, m, s)
}

// carryOut orders the change that leads from what Git has to what is asked for.
func (k *revisions) carryOut(ctx context.Context, obj *packagesv1.PackageRevision, m *mirror, s *sight) error {
	if err := k.shared.isOfBranch(ctx, m, s.seen); err != nil {
		return err
	}
	if obj.Spec.GetLifecycle() == packagesv1.LifecycleDeleted {
		change, err := k.removal(ctx, obj, m, s.seen)
		if err == nil {
			err = k.order(obj, m, s, change)
		}
		if err != nil {
			return s.expire(err)
		}
		return nil
	}
	change, err := transition(obj, s.seen)
	if err == nil && change.Kind == pkgrepo.Publish {
		if err = s.areConflictsApproved(obj); err == nil {
			err = k.isInjected(ctx, obj.Namespace, s.seen)
		}
	}
	if err != nil {
		return err
	}
	if newest := m.Snapshot().Package(s.seen.Package).Newest(); change.Kind == pkgrepo.ProposeDeletion && newest != nil && newest.Name != s.seen.Name {
		return failure.Stall(packagesv1.InvalidTransitionReason, fmt.Errorf(
			"only the newest revision, %s, can be removed; set spec.lifecycle to Published, and use spec.history of the Repository to prune old tags", newest.Name))
	}
	return k.order(obj, m, s, change)
}

// find is the revision that the object stands for; nil if Git has it no more.
func (k *revisions) find(obj *packagesv1.PackageRevision, m *mirror) *pkgrepo.Revision {
	return shownAs(obj.Spec.Repository, m.Snapshot().Package(obj.Spec.Package), obj.Name)
}

// isStale tells whether it is Git that has moved on since the object was last reported, and nobody who asks for a change: then
// the spec follows. What was never reported asks for nothing but an approval, which names its commit. Of what is published
// nobody can ask for a draft, nor of what is not that its deletion is proposed.
func isStale(obj *packagesv1.PackageRevision, seen packagesv1.Lifecycle) bool {
	asked := obj.Spec.GetLifecycle()
	switch {
	case obj.Status.Lifecycle == "":
		// An approval that was carried out is no word against a deletion that is proposed since.
		return asked != packagesv1.LifecyclePublished || obj.Spec.ApprovedCommit == "" || seen == packagesv1.LifecycleDeletionProposed
	case asked == packagesv1.LifecycleDeleted:
		return false // It is carried out now, or it expires.
	case seen.IsPublished() && !asked.IsPublished(), !seen.IsPublished() && asked == packagesv1.LifecycleDeletionProposed:
		return true
	}
	return obj.Status.Lifecycle != seen && asked == obj.Status.Lifecycle
}

// follow has the spec say what Git has.
func (k *revisions) follow(ctx context.Context, obj *packagesv1.PackageRevision, seen packagesv1.Lifecycle) error {
	observed := obj.DeepCopy()
	if observed.Status.Lifecycle.IsPublished() != seen.IsPublished() {
		// The API server takes no spec that is against what was observed.
		observed.Status.Lifecycle = seen
		patch := client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
		if err := k.shared.Client.Status().Patch(ctx, observed, patch, client.FieldOwner(k.shared.FieldOwner)); err != nil {
			return fmt.Errorf("report the lifecycle %s: %w", seen, err)
		}
	}
	followed := observed.DeepCopy()
	followed.Spec.Lifecycle, followed.Spec.ApprovedCommit, followed.Spec.ApprovedConflicts = seen, "", ""
	patch := client.MergeFromWithOptions(observed, client.MergeFromWithOptimisticLock{})
	if err := k.shared.Client.Patch(ctx, followed, patch, client.FieldOwner(k.shared.FieldOwner)); err != nil {
		return fmt.Errorf("follow the lifecycle %s: %w", seen, err)
	}
	return nil
}

// transition is the change that leads from what Git has to what is asked for.
func transition(obj *packagesv1.PackageRevision, seen *pkgrepo.Revision) (*pkgrepo.Change, error) {
	change := &pkgrepo.Change{Package: seen.Package, Workspace: seen.Workspace, Expect: seen.Commit}
	switch asked := obj.Spec.GetLifecycle(); {
	case seen.Lifecycle == pkgrepo.Draft && asked == packagesv1.LifecycleProposed:
		change.Kind = pkgrepo.Propose
	case seen.Lifecycle == pkgrepo.Proposed && asked == packagesv1.LifecycleDraft:
		change.Kind = pkgrepo.Reject
	case seen.Lifecycle == pkgrepo.Proposed && asked == packagesv1.LifecyclePublished:
		change.Kind = pkgrepo.Publish
		return change, mayPublish(obj, seen)
	case seen.Lifecycle == pkgrepo.Published && asked == packagesv1.LifecycleDeletionProposed:
		change.Kind, change.Revision = pkgrepo.ProposeDeletion, seen.Name
	case seen.Lifecycle == pkgrepo.DeletionProposed && asked == packagesv1.LifecyclePublished:
		change.Kind, change.Revision = pkgrepo.RejectDeletion, seen.Name
	default:
		return nil, failure.Stall(packagesv1.InvalidTransitionReason, fmt.Errorf(
			"a revision that is %s cannot become %s; ask for another lifecycle", seen.Lifecycle, asked))
	}
	return change, nil
}

// mayPublish says what keeps the change from being published.
func mayPublish(obj *packagesv1.PackageRevision, seen *pkgrepo.Revision) error {
	switch waiting := seen.Facts.Waiting(); {
	case seen.Err != nil:
		return failure.Wait(packagesv1.InvalidPackageReason, 0, seen.Err)
	case obj.Spec.ApprovedCommit != seen.Commit:
		return failure.Wait(packagesv1.ApprovedCommitMismatchReason, 0, fmt.Errorf(
			"spec.approvedCommit is %s, and the change is at %s; look at it again, and approve that commit", cmp.Or(obj.Spec.ApprovedCommit, "empty"), seen.Commit))
	case len(waiting) > 0:
		return failure.Wait(packagesv1.GatesNotMetReason, 0, fmt.Errorf("these readiness gates are not open: %s", strings.Join(waiting, ", ")))
	}
	return nil
}

// isInjected says which required points of the package nothing fills, as its variant knows it: the conditions in the Kptfile are written by
// whoever may push to the draft, and so is the name of the variant: it counts only if it is in the namespace.
func (k *revisions) isInjected(ctx context.Context, of string, seen *pkgrepo.Revision) error {
	namespace, name, _ := strings.Cut(seen.Facts.Variant, "/")
	if namespace != of {
		return nil
	}
	var v packagesv1.PackageVariant
	if err := k.shared.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !conditions.IsFalse(&v, packagesv1.InjectedCondition) {
		return nil
	}
	return failure.Wait(packagesv1.GatesNotMetReason, 0, fmt.Errorf("PackageVariant %s: %s", v.Name, conditions.GetMessage(&v, packagesv1.InjectedCondition)))
}

// order has the change made, and tells what became of it.
func (k *revisions) order(obj *packagesv1.PackageRevision, m *mirror, s *sight, change *pkgrepo.Change) error {
	o := order{
		from: orderer{ofRevision, client.ObjectKeyFromObject(obj)}, of: m.Repository, uid: obj.UID, generation: obj.Generation,
		key:    strings.Join([]string{string(change.Kind), s.seen.Ref, change.Expect}, " "),
		change: *change,
	}
	if change.Kind == pkgrepo.Remove || change.Discard {
		o.key += fmt.Sprintf(" %d", obj.Generation) // Each approval has an outcome of its own.
	}
	s.done = k.shared.desk.ask(in(obj, obj.Spec.Repository), o)
	if s.done == nil || s.done.result.Err == nil {
		s.progress = progressOf(*change)
		return nil
	}
	return explain(s.done.result.Err)
}

// Settle implements kernel.Owner.
func (k *revisions) Settle(ctx context.Context, obj *packagesv1.PackageRevision, _ *sight) error {
	var named string
	if artifact := obj.Status.Artifact; artifact != nil {
		named = artifact.Path
	}
	_, err := k.shared.Pipeline.Store.Collect(ctx, stored(obj), named)
	return err
}

// Finalize implements kernel.Owner. What Git still has is shown again.
func (k *revisions) Finalize(ctx context.Context, obj *packagesv1.PackageRevision) error {
	repository := in(obj, obj.Spec.Repository)                                        // The object is written to while the timer runs.
	time.AfterFunc(showAgainDelay, func() { k.shared.repositories.wake(repository) }) // After the last of many too.
	return k.shared.Pipeline.Store.Delete(ctx, stored(obj))
}

// showAgainDelay is enough for the cache to notice that an object is gone.
const showAgainDelay = time.Second
