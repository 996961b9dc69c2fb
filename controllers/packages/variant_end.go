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

// Dismantle implements kernel.Dismantler: the variant lets go of what it keeps. Where the namespace goes as well, everything is
// left as it is.
func (k *variants) Dismantle(ctx context.Context, obj *packagesv1.PackageVariant) (*look, error) {
	l := &look{}
	if obj.Undecodable != "" || obj.Spec.DryRun {
		return l, nil
	}
	if ends, err := endsWith(ctx, k.shared.Reader, obj.Namespace); err != nil || ends {
		return l, err
	}
	kept := []packagesv1.DownstreamStatus{target(obj)}
	if last := obj.Status.Downstream; last != nil && *last != target(obj) {
		kept = append(kept, *last)
	}
	for _, at := range kept {
		if err := k.letGo(ctx, obj, at, l); err != nil {
			return l, err
		}
		if l.progress != "" {
			return l, failure.Wait(packagesv1.ProgressingReason, 0, errors.New(l.progress))
		}
	}
	return l, nil
}

// target is the package that the spec has the variant keep.
func target(obj *packagesv1.PackageVariant) packagesv1.DownstreamStatus {
	return packagesv1.DownstreamStatus{Repo: obj.Spec.Downstream.Repo, Package: obj.Spec.GetDownstreamPackage()}
}

// move lets go of the package that the variant kept before its spec named another one, and says so while that takes time. The
// status tells which one it was: it does so until nothing is left to do there, so that no restart forgets it.
func (k *variants) move(ctx context.Context, obj *packagesv1.PackageVariant, l *look) error {
	last := obj.Status.Downstream
	if obj.Undecodable != "" || last == nil || *last == target(obj) {
		return nil
	}
	l.kept = last
	if obj.Spec.DryRun {
		return nil
	}
	if err := k.letGo(ctx, obj, *last, l); err != nil {
		return fmt.Errorf("let go of package %s: %w", last.Package, err)
	}
	if l.progress != "" {
		l.progress = fmt.Sprintf("Letting go of package %s of Repository %s", last.Package, last.Repo)
		return nil
	}
	l.kept = nil
	return nil
}

// letGo drops the open change of a package, and proposes to delete what is published; with orphan, and where the Repository is
// gone, it leaves everything as it is. While it has something to do, the look says which progress it makes.
func (k *variants) letGo(ctx context.Context, obj *packagesv1.PackageVariant, at packagesv1.DownstreamStatus, l *look) error {
	if obj.Spec.GetDeletionPolicy() == packagesv1.DeletionOrphan {
		return nil
	}
	b := &brief{owner: ownerOf(obj), downRepo: in(obj, at.Repo), downstream: at.Package, adopted: adoptedAt(obj, at)}
	var err error
	if b.down, err = k.shared.repository(ctx, b.downRepo); err != nil {
		return unlessGone(err)
	}
	if b.down.trust != nil {
		return nil // Nothing is written there.
	}
	if err := b.down.checkKnown(b.downstream); err != nil {
		return err
	}
	l.state = b.down.Snapshot().Package(b.downstream)
	l.open = ownChange(l.state, b.owns)
	if err := b.canRead(l.state, l.open != nil); err != nil {
		return err // It may be the variant's.
	}
	if change := leaving(b, l); change != nil {
		_, err := k.order(obj, b, l, *change)
		return err
	}
	l.state, l.open = nil, nil
	return nil
}

// leaving is the change that comes next when the variant goes; nil if nothing of it is left.
func leaving(b *brief, l *look) *pkgrepo.Change {
	if l.open != nil {
		return &pkgrepo.Change{Kind: pkgrepo.Drop, Package: b.downstream, Workspace: l.open.Workspace, Expect: l.open.Commit}
	}
	if l.state == nil || l.state.Branch == nil || !b.owns(l.state.Branch) {
		return nil
	}
	newest := l.state.Newest()
	if newest == nil || newest.Lifecycle == pkgrepo.DeletionProposed {
		return nil
	}
	return &pkgrepo.Change{Kind: pkgrepo.ProposeDeletion, Package: b.downstream, Revision: newest.Name, Expect: newest.Commit}
}

// Settle implements kernel.Owner.
func (*variants) Settle(context.Context, *packagesv1.PackageVariant, *look) error { return nil }

// Finalize implements kernel.Owner.
func (k *variants) Finalize(_ context.Context, obj *packagesv1.PackageVariant) error {
	k.Forget(client.ObjectKeyFromObject(obj))
	return nil
}
