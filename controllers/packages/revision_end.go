package packages

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// removal is the change that an approval with lifecycle Deleted asks for: it removes the package of a revision whose deletion is
// proposed, or discards a draft or proposal, at the commit that was approved.
func (k *revisions) removal(ctx context.Context, obj *packagesv1.PackageRevision, m *mirror, seen *pkgrepo.Revision) (*pkgrepo.Change, error) {
	change := &pkgrepo.Change{Package: seen.Package, Workspace: seen.Workspace, Expect: seen.Commit}
	switch seen.Lifecycle {
	case pkgrepo.Published:
		return nil, fmt.Errorf("the deletion of revision %s is not proposed, or was withdrawn; propose it first", seen.Name)
	case pkgrepo.Draft, pkgrepo.Proposed:
		change.Kind, change.Discard = pkgrepo.Drop, true
	case pkgrepo.DeletionProposed:
		change.Kind, change.Revision = pkgrepo.Remove, seen.Name
		keeper, err := k.shared.liveKeeper(ctx, m, seen.Package, "")
		if err != nil {
			return nil, err
		}
		if keeper != "" {
			return nil, fmt.Errorf("PackageVariant %s manages the package; delete that variant first", keeper)
		}
	}
	if obj.Spec.ApprovedCommit != seen.Commit {
		return nil, fmt.Errorf("spec.approvedCommit is %s, and the revision is at %s; review that commit, and approve it",
			cmp.Or(obj.Spec.ApprovedCommit, "empty"), seen.Commit)
	}
	return change, nil
}

// expiryDelay is when an approval that has expired is taken back: its reason is in status by then, so that no crash loses it.
const expiryDelay = 100 * time.Millisecond

// expire reports why an approval to remove something cannot be carried out now. It is never carried out later.
func (s *sight) expire(why error) error {
	s.expired = fmt.Sprintf("The approval of the removal has expired: %s", why)
	return failure.Wait(packagesv1.ApprovalExpiredReason, expiryDelay, fmt.Errorf("the approval of the removal has expired: %w", why))
}

// isExpired tells whether the approval that the spec has was reported as expired.
func isExpired(obj *packagesv1.PackageRevision) bool {
	c := conditions.Get(obj, packagesv1.ApprovedCondition)
	return c != nil && c.ObservedGeneration == obj.Generation && obj.Spec.GetLifecycle() == packagesv1.LifecycleDeleted
}

// unread is the error of a Repository that cannot be read. An approval to remove something does not wait for it, unless the Repository
// was not read since this process began.
func (k *revisions) unread(ctx context.Context, obj *packagesv1.PackageRevision, s *sight, err error) error {
	if obj.Spec.GetLifecycle() != packagesv1.LifecycleDeleted {
		return err
	}
	if isExpired(obj) && obj.Status.Lifecycle != "" {
		return cmp.Or(k.follow(ctx, obj, obj.Status.Lifecycle), err)
	}
	var repository packagesv1.Repository
	got := k.shared.Client.Get(ctx, in(obj, obj.Spec.Repository), &repository)
	if got == nil && (repository.Spec.Suspend || conditions.IsFalse(&repository, meta.ReadyCondition)) {
		return s.expire(err)
	}
	return err
}

// liveKeeper is the PackageVariant that keeps a package of a repository as its downstream, other than the one with the UID; empty if none
// does. A variant that may not take over the package of another one does not keep it. It looks at the Repositories of all namespaces, also
// at those that were not read yet.
func (s Shared) liveKeeper(ctx context.Context, m *mirror, pkg string, except types.UID) (string, error) {
	var repositories packagesv1.RepositoryList
	if err := s.Client.List(ctx, &repositories, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the Repositories: %w", err)
	}
	owner := ""
	if branch := branchOf(m.Snapshot().Package(pkg)); branch != nil && branch.Err == nil {
		owner = branch.Facts.Variant
	}
	whole := path.Join(strings.Trim(m.directory, "/"), pkg)
	for i := range repositories.Items {
		r := &repositories.Items[i]
		url := s.urlOf(ctx, r)
		mayBeSame := url == "" && r.Namespace == m.key.Namespace // Its GitRepository is not there, as in the middle of a restore.
		if r.Spec.GetBranch() != m.branch || !mayBeSame && !variant.SameRepository(url, m.url) {
			continue
		}
		var variants packagesv1.PackageVariantList
		if err := s.Client.List(ctx, &variants, client.InNamespace(r.Namespace), client.MatchingFields{repositoryIndex: r.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("list the variants of Repository %s: %w", r.Name, err)
		}
		for j := range variants.Items {
			v := &variants.Items[j]
			isThere := v.Spec.Downstream.Repo == r.Name && path.Join(strings.Trim(r.Spec.Directory, "/"), v.Spec.GetDownstreamPackage()) == whole
			mayKeep := owner == "" || owner == ownerOf(v) || v.Spec.GetAdoptionPolicy() == packagesv1.AdoptExisting
			if isThere && mayKeep && v.DeletionTimestamp.IsZero() && v.UID != except {
				return ownerOf(v), nil
			}
		}
	}
	return "", nil
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
