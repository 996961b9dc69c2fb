package packages

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
)

// Dismantle implements kernel.Dismantler: who deletes an open change drops it, and who deletes a revision whose deletion is
// proposed approves that. Nothing else is taken out of Git: not what is published, and not because a namespace goes or its
// Repository does.
func (k *revisions) Dismantle(ctx context.Context, obj *packagesv1.PackageRevision) (*sight, error) {
	s := &sight{}
	m, err := k.shared.repository(ctx, in(obj, obj.Spec.Repository))
	if err != nil {
		return s, unlessGone(err)
	}
	if s.seen = k.find(obj, m); s.seen == nil || obj.Status.Lifecycle == "" || obj.Status.Commit != s.seen.Commit {
		return s, nil // What nobody has seen yet, nobody wanted to be taken out of Git. It is shown again.
	}
	change := &pkgrepo.Change{Package: s.seen.Package, Workspace: s.seen.Workspace, Expect: s.seen.Commit}
	switch s.seen.Lifecycle {
	case pkgrepo.Draft, pkgrepo.Proposed:
		change.Kind = pkgrepo.Drop
	case pkgrepo.DeletionProposed:
		if obj.Status.Lifecycle != packagesv1.LifecycleDeletionProposed {
			return s, nil // Who deleted it did not know, and was not asked for the right to approve. It is shown again.
		}
		change.Kind, change.Revision = pkgrepo.Remove, s.seen.Name
	case pkgrepo.Published:
		return s, nil // It is shown again: Git has it.
	}
	if ends, err := endsWith(ctx, k.shared.Reader, obj.Namespace); err != nil || ends {
		return s, err
	}
	if err := k.order(obj, m, s, change); err != nil {
		return s, err
	}
	return s, failure.Wait(packagesv1.ProgressingReason, 0, fmt.Errorf("%s", s.progress))
}

// abandon removes an object whose Repository is no more, and was gone before it could remove the object itself. Whatever is in
// Git is shown again where the Repository is made anew.
func (k *revisions) abandon(ctx context.Context, obj *packagesv1.PackageRevision, gone error) error {
	var repository packagesv1.Repository
	err := k.shared.Reader.Get(ctx, in(obj, obj.Spec.Repository), &repository)
	switch {
	case apierrors.IsNotFound(err):
		return cmp.Or(k.shared.hide(ctx, obj), gone)
	case err != nil:
		return fmt.Errorf("get Repository %s: %w", obj.Spec.Repository, err)
	}
	return gone
}

// unlessGone is the error, unless it is that there is no repository: then nothing is to be taken out of it.
func unlessGone(err error) error {
	if failure.Of(err).Reason == packagesv1.RepositoryNotFoundReason {
		return nil
	}
	return err
}

// endsWith tells whether the namespace is being deleted.
func endsWith(ctx context.Context, reader client.Reader, name string) (bool, error) {
	var namespace corev1.Namespace
	err := reader.Get(ctx, types.NamespacedName{Name: name}, &namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get the namespace: %w", err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}
