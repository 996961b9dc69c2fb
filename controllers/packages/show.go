package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
)

// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagerevisions,verbs=get;list;watch;create;update;patch;delete

// maxOpen is how many open changes of a package are objects: whoever pushes branches is not to fill the API server.
const maxOpen = 100

// revisionName is the name of the object that shows a revision.
func revisionName(repository string, r *pkgrepo.Revision) string {
	return objectName(repository, r.Package, workspaceOf(r))
}

// objectName is the name of the object that stands for the parts. It ends in a hash of them, as dots and slashes of two
// packages may give the same name.
func objectName(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	hash := "-" + hex.EncodeToString(sum[:5])
	readable := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c == '/':
			return '.'
		}
		return '-'
	}, strings.Join(parts, "."))
	// A name is made of labels, each of which begins and ends with a letter or digit.
	labels := strings.FieldsFunc(readable, func(c rune) bool { return c == '.' })
	for i := range labels {
		labels[i] = strings.Trim(labels[i], "-")
	}
	readable = strings.Join(strings.FieldsFunc(strings.Join(labels, "."), func(c rune) bool { return c == '.' }), ".")
	return strings.TrimRight(readable[:min(len(readable), maxReadable)], "-.") + hash
}

// maxReadable leaves room for what an object's name may have beside it.
const maxReadable = 200

// shownAs is the revision of a package that is shown as the object of the name; nil if it has none.
func shownAs(repository string, p *pkgrepo.Package, name string) *pkgrepo.Revision {
	if p == nil {
		return nil
	}
	return shown(repository, &pkgrepo.Snapshot{Packages: map[string]*pkgrepo.Package{p.Path: p}})[name]
}

// workspaceOf is what the object of a revision says its workspace is.
func workspaceOf(r *pkgrepo.Revision) string { return cmp.Or(r.Workspace, r.Name) }

// isPublished tells whether the revision was published.
func isPublished(r *pkgrepo.Revision) bool { return packagesv1.Lifecycle(r.Lifecycle).IsPublished() }

// shown are the revisions that are objects, by name: all open changes, and of what is published the newest, of which the
// Kptfiles are known. Git has all of them.
func shown(repository string, s *pkgrepo.Snapshot) map[string]*pkgrepo.Revision {
	all := map[string]*pkgrepo.Revision{}
	for _, found := range s.Packages {
		for _, open := range foremost(found.Open) {
			all[revisionName(repository, open)] = open
		}
		if found.Branch == nil {
			continue
		}
		for i := range found.Published[:min(len(found.Published), pkgrepo.Detailed)] {
			name := revisionName(repository, &found.Published[i])
			if all[name] == nil { // Else a change was begun again under the name of one that is published.
				all[name] = &found.Published[i]
			}
		}
	}
	return all
}

// foremost are the open changes that are objects: where there are too many, what is proposed and what variants have made goes
// before all else.
func foremost(open []pkgrepo.Revision) []*pkgrepo.Revision {
	all := make([]*pkgrepo.Revision, len(open))
	for i := range open {
		all[i] = &open[i]
	}
	if len(all) <= maxOpen {
		return all
	}
	rank := func(r *pkgrepo.Revision) int {
		switch {
		case r.Lifecycle == pkgrepo.Proposed:
			return 0
		case strings.HasPrefix(r.Workspace, pkgrepo.VariantWorkspace):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b *pkgrepo.Revision) int { return cmp.Compare(rank(a), rank(b)) })
	return all[:maxOpen]
}

// leftOut is how many open changes are no objects.
func leftOut(s *pkgrepo.Snapshot) (changes int) {
	for _, found := range s.Packages {
		changes += max(len(found.Open)-maxOpen, 0)
	}
	return changes
}

// show makes the objects of revisions, and removes those of revisions that are no more.
func (k *repositories) show(ctx context.Context, obj *packagesv1.Repository, s *pkgrepo.Snapshot) error {
	var list packagesv1.PackageRevisionList
	err := k.shared.Client.List(ctx, &list, client.InNamespace(obj.Namespace), client.MatchingFields{repositoryIndex: obj.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the revisions: %w", err)
	}
	want := shown(obj.Name, s)
	there := make(map[string]bool, len(list.Items))
	var errs []error
	for i := range list.Items {
		have := &list.Items[i]
		if there[have.Name] = true; want[have.Name] == nil && s.CheckKnown(have.Spec.Package) == nil {
			errs = append(errs, k.shared.hide(ctx, have))
		}
	}
	for name, r := range want {
		if !there[name] {
			errs = append(errs, k.create(ctx, obj, name, r))
		}
	}
	return errors.Join(errs...)
}

// create makes the object of a revision.
func (k *repositories) create(ctx context.Context, obj *packagesv1.Repository, name string, r *pkgrepo.Revision) error {
	made := &packagesv1.PackageRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.Namespace, Name: name, Labels: revisionLabels(r),
			Finalizers: []string{packagesv1.RevisionFinalizer},
		},
		Spec: packagesv1.PackageRevisionSpec{
			Repository: obj.Name, Package: r.Package, Workspace: workspaceOf(r), Lifecycle: packagesv1.Lifecycle(r.Lifecycle),
		},
	}
	err := k.shared.Client.Create(ctx, made, client.FieldOwner(k.shared.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return nil // The cache is behind.
	}
	if err != nil {
		return fmt.Errorf("create PackageRevision %s: %w", name, err)
	}
	return nil
}

// hide removes the object of a revision that is no more. Nothing is to be removed from Git for it, also where the revision is
// back before the object is gone, as when its Repository is made anew: it goes without a finalizer, or later.
func (s Shared) hide(ctx context.Context, have *packagesv1.PackageRevision) error {
	free := have.DeepCopy()
	if controllerutil.RemoveFinalizer(free, packagesv1.RevisionFinalizer) {
		patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
		if err := s.Client.Patch(ctx, free, patch, client.FieldOwner(s.FieldOwner)); err != nil {
			return ignoreGone(have.Name, err)
		}
	}
	uid, version := free.UID, free.ResourceVersion
	return ignoreGone(have.Name, s.Client.Delete(ctx, free, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

func ignoreGone(name string, err error) error {
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete PackageRevision %s: %w", name, err)
	}
	return nil
}

// Finalize implements kernel.Owner: the objects go, and the variants say that there is no such Repository. What is in Git stays.
func (k *repositories) Finalize(ctx context.Context, obj *packagesv1.Repository) error {
	key := client.ObjectKeyFromObject(obj)
	k.shared.mirrors.forget(key)
	users, err := k.users(ctx, key)
	for i := range users {
		k.shared.WakeVariant(client.ObjectKeyFromObject(&users[i]))
	}
	return errors.Join(err, k.show(ctx, obj, &pkgrepo.Snapshot{}))
}

// count tells how many packages are on the branch, how many revisions are published, and how many changes are open.
func count(s *pkgrepo.Snapshot) (packages, revisions, changes int) {
	for _, found := range s.Packages {
		if found.Branch != nil {
			packages++
		}
		revisions += len(found.Published)
		changes += len(found.Open)
	}
	return packages, revisions, changes
}

// isLabel tells whether the API server takes it.
func isLabel(key, value string) bool {
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}
