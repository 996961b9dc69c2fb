package packages

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// spread makes the variants that are missing, changes those that are to be others, and lets go of those without a target,
// unless the guard keeps them. What goes wrong with one of them is its target's problem.
func (k *sets) spread(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread) error {
	there := maps.Clone(s.there)
	for _, downstream := range s.wanted.Places() {
		name, target := objectName(obj.Name, downstream.Repo, downstream.Package), s.wanted.Targets[downstream]
		have, err := k.ensure(ctx, obj, there[name], name, target, s.wanted.Variants[downstream], s)
		if err != nil {
			s.wanted.Problems = append(s.wanted.Problems, fanout.Problem{Target: target, Err: err})
		}
		if delete(there, name); have != nil {
			s.have = append(s.have, have)
		}
	}
	maps.DeleteFunc(there, func(_ string, v *packagesv1.PackageVariant) bool {
		stays := !v.DeletionTimestamp.IsZero() ||
			!s.wanted.IsUnwanted(fanout.There{Downstream: v.Spec.Downstream, Target: v.Annotations[packagesv1.TargetAnnotation]})
		if stays {
			s.have = append(s.have, v)
		}
		return stays
	})
	return k.letGo(ctx, obj, there, s)
}

// ensure makes a variant, or what it is to be of one that is there. What the template does not say is people's.
func (k *sets) ensure(
	ctx context.Context, obj *packagesv1.PackageVariantSet, have *packagesv1.PackageVariant, name string,
	target fanout.Target, spec packagesv1.PackageVariantSpec, s *spread,
) (*packagesv1.PackageVariant, error) {
	notes := annotations(target, s.marks[spec.Downstream])
	if have == nil {
		spec = *spec.DeepCopy() // The answer is decoded into it, and the template is kept.
		made := &packagesv1.PackageVariant{ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.Namespace, Name: name, Annotations: notes,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, packagesv1.GroupVersion.WithKind(packagesv1.PackageVariantSetKind))},
		}, Spec: spec}
		err := k.shared.Client.Create(ctx, made, client.FieldOwner(k.shared.FieldOwner))
		if apierrors.IsAlreadyExists(err) {
			var other packagesv1.PackageVariant
			if got := k.shared.Reader.Get(ctx, client.ObjectKeyFromObject(made), &other); got == nil && metav1.IsControlledBy(&other, obj) {
				return &other, nil // The cache is behind.
			}
		}
		if err != nil {
			return nil, fmt.Errorf("create PackageVariant %s: %w", name, err)
		}
		s.made++
		return made, nil
	}
	isNoted := have.Annotations[packagesv1.TargetAnnotation] == target.Key() && marksOf(have) == s.marks[spec.Downstream]
	if !have.DeletionTimestamp.IsZero() || isNoted && isVariant(have, spec) {
		return have, nil
	}
	changed := have.DeepCopy()
	changed.Spec = *new(peoples(have, spec)).DeepCopy()
	for _, key := range []string{packagesv1.TargetAnnotation, packagesv1.RevisionAnnotation, packagesv1.JoinedAnnotation} {
		delete(changed.Annotations, key)
	}
	for key, value := range notes {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	}
	if err := k.shared.Client.Update(ctx, changed, client.FieldOwner(k.shared.FieldOwner)); err != nil {
		return have, fmt.Errorf("change PackageVariant %s: %w", name, err)
	}
	k.written.note(client.ObjectKeyFromObject(obj), changed)
	s.changed++
	return changed, nil
}

// annotations are what a variant says of where it comes from.
func annotations(target fanout.Target, m marks) map[string]string {
	notes := map[string]string{packagesv1.TargetAnnotation: target.Key(), packagesv1.RevisionAnnotation: m.revision, packagesv1.JoinedAnnotation: m.joined}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	return notes
}

// letGo deletes the variants that have no target any more. Their own deletionPolicy says what becomes of their packages.
func (k *sets) letGo(ctx context.Context, obj *packagesv1.PackageVariantSet, going map[string]*packagesv1.PackageVariant, s *spread) error {
	allowed, err := strconv.Atoi(strings.TrimSpace(obj.Annotations[packagesv1.AllowDeletionAnnotation]))
	isAllowed := err == nil && len(going) <= allowed
	// Those that go already, and those that have just come, make room for no more.
	there := len(going) - s.made
	for _, v := range s.have {
		if v.DeletionTimestamp.IsZero() {
			there++
		}
	}
	if !isAllowed && !fanout.MayGo(there, len(going), obj.Spec.GetGuardPercent()) {
		s.unwanted = len(going)
		for _, v := range going {
			s.have = append(s.have, v)
		}
		return nil
	}
	for name, v := range going {
		err := k.shared.Client.Delete(ctx, v, client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PackageVariant %s: %w", name, err)
		}
		s.gone++
	}
	return nil
}

// tally counts how many variants are ready, and have an open change.
func tally(variants []*packagesv1.PackageVariant) (ready, open int) {
	for _, v := range variants {
		if conditions.IsReady(v) {
			ready++
		}
		if v.Status.Change != nil {
			open++
		}
	}
	return ready, open
}
