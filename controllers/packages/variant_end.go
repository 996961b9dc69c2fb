package packages

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
)

// Dismantle implements kernel.Dismantler: the variant lets go of what it keeps. Where its namespace or its kind is deleted as well,
// everything is left as it is.
func (k *variants) Dismantle(ctx context.Context, obj *packagesv1.PackageVariant) (*look, error) {
	l := &look{}
	if obj.Undecodable != "" || obj.Spec.DryRun {
		return l, nil
	}
	if ends, err := isBeingRemoved(ctx, k.shared.Reader, obj.Namespace); err != nil || ends {
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

// letGo drops the open change of a package unless people have committed to it, and proposes to delete what is published; with orphan, and
// where the Repository is gone, it leaves everything as it is. While it has something to do, the look says which progress it makes.
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
	if l.open != nil && !l.open.IsOwn {
		l.keptDraft = shortRef(l.open.Ref)
	}
	if change := leaving(b, l); change != nil {
		keeper, err := k.shared.liveKeeper(ctx, b.down, b.downstream, obj.UID)
		if err != nil {
			return err
		}
		if change.Kind == pkgrepo.Drop || keeper == "" {
			change.Message = pkgrepo.Message{Variant: b.owner, UID: string(obj.UID)}
			_, err = k.order(obj, b, l, *change)
			return err
		}
	}
	l.state, l.open = nil, nil
	return nil
}

// leaving is the change that comes next when the variant goes; nil if nothing of it is left.
func leaving(b *brief, l *look) *pkgrepo.Change {
	if l.open != nil && l.open.IsOwn {
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

// withdrawal takes back a proposed deletion that a variant asked for: this one keeps the package. What people proposed stays.
func withdrawal(p *pkgrepo.Package) *pkgrepo.Change {
	if p == nil {
		return nil
	}
	for i := range p.Published {
		if r := &p.Published[i]; r.Lifecycle == pkgrepo.DeletionProposed && r.Proposer.Variant != "" {
			return &pkgrepo.Change{Kind: pkgrepo.RejectDeletion, Package: r.Package, Revision: r.Name, Expect: r.Commit}
		}
	}
	return nil
}

// isBeingRemoved tells whether the objects of the namespace go without anybody having meant each of them: the namespace is being
// deleted, or their kind is.
func isBeingRemoved(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	for _, one := range []struct {
		obj  client.Object
		name string
	}{
		{&corev1.Namespace{}, namespace},
		{&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}, variantsCRD},
	} {
		err := reader.Get(ctx, types.NamespacedName{Name: one.name}, one.obj)
		switch {
		case apierrors.IsNotFound(err), err == nil && !one.obj.GetDeletionTimestamp().IsZero():
			return true, nil
		case apierrors.IsForbidden(err):
			continue // An installation for one namespace may not read it. All that follows can be taken back.
		case err != nil:
			return false, fmt.Errorf("get %s: %w", one.name, err)
		}
	}
	return false, nil
}

// variantsCRD is the name of the CustomResourceDefinition of PackageVariants.
const variantsCRD = "packagevariants.packages.sluice.dev"

// Settle implements kernel.Owner.
func (*variants) Settle(context.Context, *packagesv1.PackageVariant, *look) error { return nil }

// Finalize implements kernel.Owner.
func (k *variants) Finalize(_ context.Context, obj *packagesv1.PackageVariant) error {
	k.Forget(client.ObjectKeyFromObject(obj))
	return nil
}
