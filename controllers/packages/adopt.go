package packages

import (
	"cmp"
	"context"
	"path"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
)

// adoptedAt is what the variant has taken over as it was in a place; nil for nothing.
func adoptedAt(obj *packagesv1.PackageVariant, at packagesv1.DownstreamStatus) *packagesv1.AdoptedStatus {
	if last := obj.Status.Downstream; last == nil || *last != at {
		return nil
	}
	return obj.Status.Adopted
}

// hasAdopted tells whether the revision was taken over as it was: nothing in Git says so.
func (b *brief) hasAdopted(r *pkgrepo.Revision) bool {
	return b.adopted != nil && r != nil && r.Facts.Variant == "" && r.Tree == b.adopted.Tree
}

// owns tells whether the revision is the variant's.
func (b *brief) owns(r *pkgrepo.Revision) bool {
	return r.Facts.Variant == b.owner || b.hasAdopted(r)
}

// adopt is the package that is there, which needs nothing to be taken over.
func (m *maker) adopt(cur pkgrepo.Current) (*packagesv1.AdoptedStatus, error) {
	there := cmp.Or(cur.Open, cur.Branch)
	config, err := m.intent(there.Facts.Lock.Commit)
	return &packagesv1.AdoptedStatus{Tree: there.Tree, Config: config}, err
}

// keeper is the variant that keeps a package in which no variant's name stands: who has taken it over, else the oldest of those that
// may. It is empty where none may.
func (s Shared) keeper(ctx context.Context, b *brief) string {
	var may []packagesv1.PackageVariant
	for _, m := range s.mirrors.of(b.down.url) {
		var list packagesv1.PackageVariantList
		if err := s.Client.List(ctx, &list, client.InNamespace(m.key.Namespace), client.MatchingFields{repositoryIndex: m.key.Name}, client.UnsafeDisableDeepCopy); err != nil {
			continue // It is read from memory, where all is well.
		}
		for i := range list.Items {
			v := &list.Items[i]
			at := target(v)
			isThere := at.Repo == m.key.Name && m.branch == b.down.branch && path.Join(m.directory, at.Package) == path.Join(b.down.directory, b.downstream)
			if isThere && v.DeletionTimestamp.IsZero() && (v.Spec.GetAdoptionPolicy() == packagesv1.AdoptExisting || adoptedAt(v, at) != nil) {
				may = append(may, *v)
			}
		}
	}
	if len(may) == 0 {
		return ""
	}
	rank := func(v *packagesv1.PackageVariant) int {
		if adoptedAt(v, target(v)) != nil {
			return 0
		}
		return 1
	}
	first := slices.MinFunc(may, func(a, b packagesv1.PackageVariant) int {
		return cmp.Or(rank(&a)-rank(&b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(ownerOf(&a), ownerOf(&b)))
	})
	return ownerOf(&first)
}
