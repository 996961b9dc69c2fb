package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/variant"
)

// folder is the identity of a package: a folder of a branch of a Git repository.
type folder struct{ url, branch, path string }

// folder is that of a package of the repository, on its own branch unless another one is named.
func (m *mirror) folder(branch, pkg string) folder {
	return folder{m.url, strings.TrimPrefix(cmp.Or(branch, m.branch), "refs/heads/"), path.Join("/", m.directory, pkg)}
}

// overlaps tells whether a change of one folder may change the other.
func (f folder) overlaps(other folder) bool {
	return f.branch == other.branch && variant.SameRepository(f.url, other.url) && (isWithin(f.path, other.path) || isWithin(other.path, f.path))
}

func isWithin(inner, outer string) bool { return inner == outer || strings.HasPrefix(inner, outer+"/") }

// isMoving tells whether a variant follows later publications or pushes. One that names a revision, a tag or a commit does not.
func isMoving(up packagesv1.Upstream) bool {
	return up.Revision == 0 && up.Tag == "" && up.Commit == ""
}

// making is a variant with its upstream folder and its downstream folder.
type making struct {
	*packagesv1.PackageVariant

	from, to folder
	// by is the previous variant of the circle.
	by *making
}

// checkCircle refuses a variant that would be made from its own output: directly if its packages overlap, or through other variants.
// Each publication would cause the next one. It refuses the youngest variant of a circle.
func (s Shared) checkCircle(ctx context.Context, obj *packagesv1.PackageVariant, b *brief) error {
	up := obj.Spec.Upstream
	if !isMoving(up) {
		return nil
	}
	own := &making{PackageVariant: obj, from: b.up.folder(up.Branch, b.upstream), to: b.down.folder("", b.downstream)}
	if own.from.overlaps(own.to) {
		return failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf(
			"spec.upstream: package %s of Repository %s overlaps the variant's own downstream package %s; choose another downstream package, or name a revision or tag",
			b.upstream, up.Repo, b.downstream))
	}
	seen, listed := map[types.NamespacedName]bool{client.ObjectKeyFromObject(obj): true}, map[listing]bool{}
	for queue := []*making{own}; len(queue) > 0; queue = queue[1:] {
		next, err := s.madeOf(ctx, queue[0], obj.Namespace, listed)
		if err != nil {
			return err
		}
		for _, m := range next {
			if key := client.ObjectKeyFromObject(m); seen[key] || !isOlder(m.PackageVariant, obj) {
				continue
			} else if seen[key] = true; m.to.overlaps(own.from) {
				return failure.Wait(packagesv1.CircularUpstreamReason, 0, m.circle(b))
			}
			queue = append(queue, m)
		}
	}
	return nil
}

// circle names the variants of a circle that ends with this one.
func (m *making) circle(b *brief) error {
	var names []string
	for ; m.by != nil; m = m.by {
		names = append([]string{ownerOf(m.PackageVariant)}, names...)
	}
	return errors.New(printable.Line(fmt.Sprintf(
		"package %s of Repository %s is made from the variant's own package %s, through PackageVariants %s; choose another package in one of them, or name a revision or tag in one",
		b.upstream, b.up.key.Name, b.downstream, strings.Join(names, ", ")), maxConditionWords))
}

// isOlder orders variants by their creation time, and by name within one second. A variant that does not exist yet is the youngest.
func isOlder(a, b *packagesv1.PackageVariant) bool {
	if b.CreationTimestamp.IsZero() {
		return true
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(ownerOf(a), ownerOf(b))) < 0
}

// listing is a list of variants by one index value of a Repository, for one branch.
type listing struct {
	repository    types.NamespacedName
	value, branch string
}

// madeOf returns the variants that follow the output of another variant, without those listed before. Anyone can create variants of
// repositories that they can read, so variants of other namespaces count only after they have written to Git.
func (s Shared) madeOf(ctx context.Context, of *making, namespace string, listed map[listing]bool) ([]*making, error) {
	var found []*making
	for _, m := range s.mirrors.of(of.to.url) {
		for _, value := range upstreamsOver(m, of.to.path) {
			at := listing{m.key, value, of.to.branch}
			if listed[at] {
				continue
			}
			listed[at] = true
			var list packagesv1.PackageVariantList
			if err := s.Client.List(ctx, &list, client.InNamespace(m.key.Namespace), client.MatchingFields{upstreamIndex: value}, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("list the variants made of %s: %w", of.to.path, err)
			}
			for i := range list.Items {
				if next := s.making(m, &list.Items[i], of, namespace); next != nil {
					found = append(found, next)
				}
			}
		}
	}
	return found, nil
}

// making returns the package that a variant makes from the output of another one; nil if it makes none, or makes it from another package.
func (s Shared) making(up *mirror, v *packagesv1.PackageVariant, of *making, namespace string) *making {
	down := s.mirrors.get(in(v, v.Spec.Downstream.Repo))
	if !publishes(v, down) || v.Namespace != namespace && !hasWritten(down, v) {
		return nil
	}
	from := up.folder(v.Spec.Upstream.Branch, v.Spec.Upstream.Package)
	if !from.overlaps(of.to) {
		return nil
	}
	return &making{PackageVariant: v, from: from, to: down.folder("", v.Spec.GetDownstreamPackage()), by: of}
}

// publishes tells whether a variant may publish a package to its downstream repository.
func publishes(v *packagesv1.PackageVariant, down *mirror) bool {
	return down != nil && !v.Spec.DryRun && v.Undecodable == "" && v.DeletionTimestamp.IsZero()
}

// hasWritten tells whether a variant made the package on the branch, or an open change of it.
func hasWritten(down *mirror, v *packagesv1.PackageVariant) bool {
	p := down.Snapshot().Package(v.Spec.GetDownstreamPackage())
	is := func(r pkgrepo.Revision) bool { return r.Facts.Variant == ownerOf(v) }
	return p != nil && (p.Branch != nil && is(*p.Branch) || slices.ContainsFunc(p.Open, is))
}

// upstreamsOver returns the index values of the variants whose upstream in the repository overlaps the path.
func upstreamsOver(m *mirror, whole string) []string {
	pkg, ok := below(m.directory, whole)
	if !ok {
		if isWithin(path.Join("/", m.directory), whole) {
			return []string{upstreamBelow(m.key.Name, "")}
		}
		return nil
	}
	values := []string{upstreamBelow(m.key.Name, pkg)}
	for at, r := range pkg {
		if r == '/' {
			values = append(values, upstreamAt(m.key.Name, pkg[:at]))
		}
	}
	return values
}

// upstreamAt and upstreamBelow are values of upstreamIndex: for variants of a package, and for variants of it or of packages inside it.
func upstreamAt(repository, pkg string) string { return repository + " = " + pkg }

func upstreamBelow(repository, pkg string) string { return repository + " < " + pkg }

// upstreamValues returns the values of upstreamIndex for a variant.
func upstreamValues(v *packagesv1.PackageVariant) []string {
	up := v.Spec.Upstream
	if !isMoving(up) {
		return nil
	}
	values := []string{upstreamAt(up.Repo, up.Package), upstreamBelow(up.Repo, ""), upstreamBelow(up.Repo, up.Package)}
	for at, r := range up.Package {
		if r == '/' {
			values = append(values, upstreamBelow(up.Repo, up.Package[:at]))
		}
	}
	return values
}
