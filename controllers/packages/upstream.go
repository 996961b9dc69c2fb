package packages

import (
	"context"
	"errors"
	"fmt"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
)

// find finds the revision that a spec leads to at the moment: for a variant, and for a set that holds its variants there.
func (m *mirror) find(ctx context.Context, up packagesv1.Upstream) (packagesv1.UpstreamStatus, error) {
	selector := pkgrepo.Selector{Package: up.Package, Tag: up.Tag, Branch: up.Branch, Range: up.Range, Commit: up.Commit}
	switch {
	case up.Revision != 0:
		selector.Revision = fmt.Sprintf("v%d", up.Revision)
	case up.Tag == "" && up.Branch == "" && up.Range == "":
		if err := m.checkKnown(up.Package); err != nil {
			return packagesv1.UpstreamStatus{}, err
		}
		newest := m.Snapshot().Package(up.Package).Newest()
		if newest == nil {
			return packagesv1.UpstreamStatus{}, failure.Wait(packagesv1.UpstreamNotFoundReason, 0, fmt.Errorf("package %s of Repository %s has no published revision", up.Package, up.Repo))
		}
		selector.Revision = newest.Name
	}
	found, err := m.Resolve(ctx, selector)
	switch {
	case errors.Is(err, pkgrepo.ErrLimit):
		err = failure.Wait(packagesv1.LimitExceededReason, 0, fmt.Errorf("repository %s: %w", up.Repo, err))
	case errors.Is(err, pkgrepo.ErrNotFound):
		err = failure.Wait(packagesv1.UpstreamNotFoundReason, 0, fmt.Errorf("package %s of Repository %s: %w", up.Package, up.Repo, err))
	case errors.Is(err, pkgrepo.ErrSelector), errors.Is(err, pkgrepo.ErrName):
		err = failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("spec.upstream: %w", err))
	case err != nil:
		err = fmt.Errorf("find package %s of Repository %s: %w", up.Package, up.Repo, err)
	default:
		err = m.verify(ctx, found.Ref, found.Commit)
	}
	return packagesv1.UpstreamStatus{
		Repo: up.Repo, Package: up.Package, Revision: found.Revision, Ref: found.Ref, Commit: found.Commit, Tree: found.Tree,
	}, err
}
