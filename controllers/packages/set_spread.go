package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/printable"
)

// spread makes the variants that are missing, changes those that are to be others, and finds out which of those without a target go.
// What goes wrong with one of them is its target's problem.
func (k *sets) spread(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread) error {
	k.judge(obj, s)
	there := maps.Clone(s.there)
	for _, downstream := range s.wanted.Places() {
		name, target := objectName(obj.Name, downstream.Repo, downstream.Package), s.wanted.Targets[downstream]
		have, err := k.ensure(ctx, obj, there[name], name, target, s.wanted.Variants[downstream], s)
		switch {
		case apierrors.IsConflict(err):
			s.late++ // It has changed meanwhile, which is nobody's problem.
		case err != nil:
			s.wanted.Problems = append(s.wanted.Problems, fanout.Problem{Target: target, Err: err})
		}
		if delete(there, name); have != nil {
			s.have = append(s.have, have)
		}
	}
	for _, v := range there {
		s.have = append(s.have, v)
		if err := k.mark(ctx, obj, v, s); err != nil {
			return err
		}
	}
	return nil
}

// untargeted are the variants that have no target any more, by name.
func untargeted(set string, there map[string]*packagesv1.PackageVariant, wanted fanout.Wanted) map[string]*packagesv1.PackageVariant {
	leaving, isUnwanted := maps.Clone(there), wanted.Unwanted()
	for at := range wanted.Variants {
		delete(leaving, objectName(set, at.Repo, at.Package))
	}
	maps.DeleteFunc(leaving, func(_ string, v *packagesv1.PackageVariant) bool {
		return !v.DeletionTimestamp.IsZero() ||
			!isUnwanted(fanout.There{Downstream: v.Spec.Downstream, Target: v.Annotations[packagesv1.TargetAnnotation]})
	})
	return leaving
}

// ensure makes a variant, or what it is to be of one that is there. What the template does not say is people's.
func (k *sets) ensure(
	ctx context.Context, obj *packagesv1.PackageVariantSet, have *packagesv1.PackageVariant, name string,
	target fanout.Target, spec packagesv1.PackageVariantSpec, s *spread,
) (*packagesv1.PackageVariant, error) {
	notes := s.annotations(have, target, s.marks[spec.Downstream])
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
	isNoted := !slices.ContainsFunc(ownAnnotations(), func(key string) bool { return have.Annotations[key] != notes[key] })
	if !have.DeletionTimestamp.IsZero() || isNoted && isVariant(have, spec) {
		return have, nil
	}
	changed := have.DeepCopy()
	changed.Spec = *new(peoples(have, spec)).DeepCopy()
	for _, key := range ownAnnotations() {
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

// ownAnnotations are those that say where a variant comes from.
func ownAnnotations() []string {
	return []string{
		packagesv1.TargetAnnotation, packagesv1.RevisionAnnotation, packagesv1.JoinedAnnotation, packagesv1.BesideAnnotation, packagesv1.TargetGoneAnnotation,
	}
}

// annotations are what a variant says of where it comes from.
func (s *spread) annotations(have *packagesv1.PackageVariant, target fanout.Target, m marks) map[string]string {
	notes := map[string]string{packagesv1.TargetAnnotation: target.Key(), packagesv1.RevisionAnnotation: m.revision, packagesv1.JoinedAnnotation: m.joined}
	if s.guard.kept() > 0 && (have == nil || have.Annotations[packagesv1.BesideAnnotation] != "") {
		notes[packagesv1.BesideAnnotation] = "true"
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	return notes
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

// failing says how many variants of targets fail, and names the first; empty for none.
func failing(s *spread) string {
	count, first, why := 0, fanout.Target{}, ""
	for _, v := range s.have {
		trouble := troubleOf(v)
		target, isWanted := s.wanted.Targets[v.Spec.Downstream]
		if trouble == "" || !isWanted {
			continue
		}
		if count++; count == 1 || target.Before(first) {
			first, why = target, trouble
		}
	}
	if count == 0 {
		return ""
	}
	return printable.Line(fmt.Sprintf("; %d of these fail, such as that of %s: %s", count, first, why), maxProblemText)
}
