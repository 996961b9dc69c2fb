package packages

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
)

// Dismantle implements kernel.Dismantler: an open change is dropped, and the deletion of what is published is proposed. With
// orphan, and where the namespace or the Repository goes as well, everything is left as it is.
func (k *variants) Dismantle(ctx context.Context, obj *packagesv1.PackageVariant) (*look, error) {
	l := &look{}
	if obj.Undecodable != "" || obj.Spec.GetDeletionPolicy() == packagesv1.DeletionOrphan || obj.Spec.DryRun {
		return l, nil
	}
	if ends, err := endsWith(ctx, k.shared.Reader, obj.Namespace); err != nil || ends {
		return l, err
	}
	b := &brief{owner: ownerOf(obj), downRepo: in(obj, obj.Spec.Downstream.Repo), downstream: obj.Spec.GetDownstreamPackage()}
	var err error
	if b.down, err = k.shared.repository(ctx, b.downRepo); err != nil {
		return l, unlessGone(err)
	}
	l.state = b.down.Snapshot().Package(b.downstream)
	l.open = ownChange(l.state, b.owner)
	change := leaving(b, l)
	if change == nil {
		return l, nil
	}
	if err := k.order(obj, b, l, *change); err != nil {
		return l, err
	}
	return l, failure.Wait(packagesv1.ProgressingReason, 0, errors.New(l.progress))
}

// leaving is the change that comes next when the variant goes; nil if nothing of it is left.
func leaving(b *brief, l *look) *pkgrepo.Change {
	if l.open != nil {
		return &pkgrepo.Change{Kind: pkgrepo.Drop, Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit}
	}
	if l.state == nil || l.state.Branch == nil || l.state.Branch.Facts.Variant != b.owner {
		return nil
	}
	newest := l.state.Newest()
	if newest == nil || newest.Lifecycle == pkgrepo.DeletionProposed {
		return nil
	}
	return &pkgrepo.Change{
		Kind: pkgrepo.ProposeDeletion, Package: b.downstream, Revision: newest.Name, Expect: newest.Commit,
		Message: b.message(fmt.Sprintf("Propose to delete %s", b.downstream)),
	}
}

// Settle implements kernel.Owner.
func (*variants) Settle(context.Context, *packagesv1.PackageVariant, *look) error { return nil }

// Finalize implements kernel.Owner.
func (k *variants) Finalize(_ context.Context, obj *packagesv1.PackageVariant) error {
	k.Forget(client.ObjectKeyFromObject(obj))
	return nil
}
