package packages

import (
	"context"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// claim finds the variant's open change in the package, nil if there is none. Its error says why the package cannot be the
// variant's: it is somebody else's, or nobody can tell.
func (s Shared) claim(ctx context.Context, b *brief, p *pkgrepo.Package) (*pkgrepo.Revision, error) {
	if p == nil {
		return nil, nil
	}
	open := ownChange(p, b.owns)
	if err := b.canRead(p, open != nil); err != nil {
		return nil, err
	}
	switch {
	case open != nil:
		return open, nil
	case p.Branch != nil && b.owns(p.Branch):
		return nil, s.isOthers(ctx, b, p)
	case p.Branch != nil:
		if err := s.mayAdopt(ctx, b, p.Branch.Facts.Variant); err != nil {
			return nil, err
		}
	}
	var left *pkgrepo.Revision
	for i := range p.Open {
		other := &p.Open[i]
		if !strings.HasPrefix(other.Workspace, pkgrepo.VariantWorkspace) {
			continue // People may have drafts of their own.
		}
		if keeps := s.keeping(ctx, b.down, b.downstream, other.Facts.Variant); keeps.beside && !keeps.here {
			continue // Drafts do not say for which branch they are; the variant does.
		}
		if err := s.mayAdopt(ctx, b, other.Facts.Variant); err != nil {
			return nil, err
		}
		left = ownChange(p, func(r *pkgrepo.Revision) bool { return r.Facts.Variant == other.Facts.Variant })
	}
	return left, nil
}

// isOthers says which other variant has begun a change of a package that is the variant's on the branch, and keeps it: it has taken over
// what the variant had left.
func (s Shared) isOthers(ctx context.Context, b *brief, p *pkgrepo.Package) error {
	for i := range p.Open {
		other := &p.Open[i]
		if other.Facts.Variant != "" && strings.HasPrefix(other.Workspace, pkgrepo.VariantWorkspace) && s.isKept(ctx, b, other.Facts.Variant) {
			return b.keptBy(other.Facts.Variant)
		}
	}
	return nil
}

// keptBy says that another variant keeps the package.
func (b *brief) keptBy(other string) error {
	return failure.Wait(packagesv1.NotOwnedReason, 0, fmt.Errorf(
		"package %s of Repository %s is kept by PackageVariant %s; choose another downstream package", b.downstream, b.downRepo.Name, other))
}

// ownChange is a variant's open change; nil without one. A copy that somebody made of it has another name.
func ownChange(p *pkgrepo.Package, owns func(*pkgrepo.Revision) bool) (found *pkgrepo.Revision) {
	if p == nil {
		return nil
	}
	for i := range p.Open {
		open := &p.Open[i]
		if owns(open) && strings.HasPrefix(open.Workspace, pkgrepo.VariantWorkspace) &&
			(found == nil || open.Lifecycle == pkgrepo.Proposed || found.Lifecycle == open.Lifecycle && open.Workspace > found.Workspace) {
			found = open
		}
	}
	return found
}

// canRead tells what of the package cannot be read. As long as the variant's own change is not known, an open one that cannot be
// may be that: another one beside it would be one too many.
func (b *brief) canRead(p *pkgrepo.Package, isKnown bool) error {
	if p == nil {
		return nil
	}
	var all []pkgrepo.Revision
	if p.Branch != nil {
		all = append(all, *p.Branch)
	}
	if !isKnown {
		all = append(all, p.Open...)
	}
	for i := range all {
		if isBranch := all[i].Lifecycle == ""; all[i].Err != nil && (isBranch || strings.HasPrefix(all[i].Workspace, pkgrepo.VariantWorkspace)) {
			return failure.Wait(packagesv1.InvalidPackageReason, 0, fmt.Errorf(
				"package %s of Repository %s cannot be read in %s: %w", b.downstream, b.downRepo.Name, shortRef(all[i].Ref), all[i].Err))
		}
	}
	return nil
}

// mayAdopt says why what another variant made, or with an empty name people, cannot be the variant's; nil if it can.
func (s Shared) mayAdopt(ctx context.Context, b *brief, other string) error {
	what := fmt.Sprintf("package %s is in Repository %s already and was not made by this variant", b.downstream, b.downRepo.Name)
	if other != "" {
		if s.isKept(ctx, b, other) {
			return b.keptBy(other)
		}
		what = fmt.Sprintf("package %s of Repository %s was kept by PackageVariant %s, which keeps it no more", b.downstream, b.downRepo.Name, other)
	}
	if other == "" {
		if keeper := s.keeper(ctx, b); keeper != "" && keeper != b.owner {
			return failure.Wait(packagesv1.NotOwnedReason, 0, fmt.Errorf(
				"package %s of Repository %s is kept by PackageVariant %s, which was there first; choose another downstream package", b.downstream, b.downRepo.Name, keeper))
		}
	}
	if b.adoption == packagesv1.AdoptExisting {
		return nil
	}
	return failure.Wait(packagesv1.NotOwnedReason, 0, fmt.Errorf("%s; set adoptionPolicy to adoptExisting, or choose another downstream package", what))
}

// isKept tells whether the other variant is there, and keeps the package. Where nobody can tell, it is.
func (s Shared) isKept(ctx context.Context, b *brief, other string) bool {
	return s.keeping(ctx, b.down, b.downstream, other).here
}

// isOfBranch says of an open change that its variant made it for another branch of the Git repository. The change itself does not say so.
func (s Shared) isOfBranch(ctx context.Context, m *mirror, seen *pkgrepo.Revision) error {
	if isPublished(seen) || !strings.HasPrefix(seen.Facts.Variant, m.key.Namespace+"/") {
		return nil
	}
	if keeps := s.keeping(ctx, m, seen.Package, seen.Facts.Variant); keeps.here || !keeps.beside {
		return nil
	}
	return failure.Wait(packagesv1.OtherBranchReason, 0, fmt.Errorf(
		"PackageVariant %s made the change for another branch than %s; propose and approve it in the Repository of that branch", seen.Facts.Variant, m.branch))
}

// keeping is where a variant keeps a package: here, or on another branch of the same Git repository.
type keeping struct{ here, beside bool }

// keeping tells where a variant keeps the package, of which there is a change in the repository. Where that cannot be known, it keeps it here.
func (s Shared) keeping(ctx context.Context, down *mirror, pkg, other string) (found keeping) {
	if other == "" {
		return found
	}
	namespace, name, _ := strings.Cut(other, "/")
	var keeper packagesv1.PackageVariant
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &keeper)
	if err != nil || keeper.Undecodable != "" {
		return keeping{here: !apierrors.IsNotFound(err)}
	}
	kept := []packagesv1.DownstreamStatus{{Repo: keeper.Spec.Downstream.Repo, Package: keeper.Spec.GetDownstreamPackage()}}
	if last := keeper.Status.Downstream; last != nil {
		kept = append(kept, *last)
	}
	for _, at := range kept {
		m := s.mirrors.get(types.NamespacedName{Namespace: namespace, Name: at.Repo})
		isSame := m != nil && variant.SameRepository(m.url, down.url) && path.Join(m.directory, at.Package) == path.Join(down.directory, pkg)
		found.here = found.here || m == nil || isSame && m.branch == down.branch
		found.beside = found.beside || isSame && m.branch != down.branch
	}
	return found
}
