package packages

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/printable"
)

const (
	// maxGuarded is the number of protected variants that the status names.
	maxGuarded = 20
	// minDigits is how many hexadecimal digits of a digest acknowledge it.
	minDigits = 12
)

// guard is the decision about variants without a target in one reconciliation.
type guard struct {
	// record is for the status. It counts the variants in due as gone: Settle deletes them once it is written, so that a crash counts
	// too many, never too few.
	record packagesv1.DeletionGuardStatus
	// leaving are all variants without a target, by name. Each is due, or in its grace period, or stays because of isClosed.
	leaving, due map[string]*packagesv1.PackageVariant
	isClosed     bool
	// message is the cause and the remedy if isClosed. acknowledged is the digest with which a person allowed the deletion of all.
	message, acknowledged string
	// vanished are the variants whose grace period begins.
	vanished []string
}

// kept is the number of variants without a target that stay.
func (g *guard) kept() int { return len(g.leaving) - len(g.due) }

// judge decides which variants without a target to delete. The baseline is the number of targets since a person last accepted them, by an edit of
// the spec or by an acknowledgement: those that have variants now, and those that have gone since. Targets that an edit deselects
// are still compared with the baseline before the edit.
func (k *sets) judge(obj *packagesv1.PackageVariantSet, s *spread) {
	g := &s.guard
	g.leaving = untargeted(obj.Name, s.there, s.wanted)
	last := packagesv1.DeletionGuardStatus{}
	if obj.Status.DeletionGuard != nil {
		last = *obj.Status.DeletionGuard
	}
	accepted, gone := accepted(s.there, g.leaving), int(last.Gone)
	g.record = packagesv1.DeletionGuardStatus{
		Generation: last.Generation, Targets: capped(accepted + gone), Gone: last.Gone, Acknowledged: last.Acknowledged,
	}
	percent := obj.Spec.GetGuardPercent()
	isKnown := last.Generation != 0 || percent == 0
	if len(g.leaving) > 0 && (!isKnown || !fanout.MayGo(accepted+gone, gone+len(g.leaving), percent)) {
		k.hold(obj, g, last.Since)
		return
	}
	g.due = map[string]*packagesv1.PackageVariant{}
	for name, v := range g.leaving {
		if wait := k.grace(obj, v); wait > 0 && !k.isDeselected(obj, v, s) {
			s.again = kernel.Sooner(s.again, wait)
		} else {
			g.due[name] = v
		}
	}
	g.record.Gone = capped(gone + len(g.due))
	if last.Generation != obj.Generation && len(g.due) == 0 {
		g.record = packagesv1.DeletionGuardStatus{Generation: obj.Generation, Targets: capped(accepted)}
	}
}

// hold deletes no variant without a target, unless a person has acknowledged the deletion of exactly these variants.
func (k *sets) hold(obj *packagesv1.PackageVariantSet, g *guard, since *metav1.Time) {
	if since == nil {
		since = new(metav1.NewTime(k.shared.Clock.Now().UTC()).Rfc3339Copy())
	}
	digest := digestOfLeaving(obj.Generation, since, g.leaving)
	asked := strings.TrimSpace(obj.Annotations[packagesv1.AllowDeletionAnnotation])
	if acknowledges(asked, digest) {
		g.due, g.acknowledged = g.leaving, digest
		g.record = packagesv1.DeletionGuardStatus{
			Generation: obj.Generation, Targets: g.record.Targets - g.record.Gone - capped(len(g.due)), Acknowledged: digest,
		}
		return
	}
	names := slices.Sorted(maps.Keys(g.leaving))
	g.isClosed, g.record.Since, g.record.Digest, g.record.Variants = true, since, digest, names[:min(len(names), maxGuarded)]
	cause := fmt.Sprintf("%d of %d accepted targets are gone, and spec.deletionGuard.minPercent is %d: %s without a target will stay",
		int(g.record.Gone)+len(names), g.record.Targets, obj.Spec.GetGuardPercent(), counted(len(names), "variant"))
	if g.record.Generation == 0 {
		cause = fmt.Sprintf("status.deletionGuard has no record of the accepted targets: %s without a target will stay", counted(len(names), "variant"))
	}
	if asked != "" {
		cause += fmt.Sprintf("; the digest %q does not match", fit(asked, maxLabel))
	}
	g.message = fmt.Sprintf("%s. Correct the selectors or restore the targets; to delete these variants, set the annotation %s to %q",
		cause, packagesv1.AllowDeletionAnnotation, digest)
}

// accepted counts the variants of accepted targets. Those that are being deleted are no longer among them, nor are those that were created
// while others had no target: what created the one may have taken the other away.
func accepted(there, leaving map[string]*packagesv1.PackageVariant) (count int) {
	for name, v := range there {
		if v.DeletionTimestamp.IsZero() && (leaving[name] != nil || v.Annotations[packagesv1.BesideAnnotation] == "") {
			count++
		}
	}
	return count
}

// digestOfLeaving identifies the variants, the generation of the spec, and the time at which the guard closed. An acknowledgement that
// was not used is therefore not valid the next time.
func digestOfLeaving(generation int64, since *metav1.Time, leaving map[string]*packagesv1.PackageVariant) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s\n", generation, since.UTC().Format(time.RFC3339))
	for _, name := range slices.Sorted(maps.Keys(leaving)) {
		fmt.Fprintf(sum, "%s/%s/%s\n", leaving[name].Namespace, name, leaving[name].UID)
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil))
}

// acknowledges tells whether the text is the digest, or the beginning of it.
func acknowledges(text, digest string) bool {
	digits := strings.TrimPrefix(text, "sha256:")
	return len(digits) >= minDigits && strings.HasPrefix(digest, "sha256:"+digits)
}

// isDeselected tells whether an edit of the spec deselects a Repository that still exists, so that a person intended it. The edit did not
// deselect a target that was missing before.
func (k *sets) isDeselected(obj *packagesv1.PackageVariantSet, v *packagesv1.PackageVariant, s *spread) bool {
	last := obj.Status.DeletionGuard
	if last == nil || last.Generation == 0 || last.Generation == obj.Generation {
		return false
	}
	if _, isMissed := k.goneSince(v); isMissed {
		return false
	}
	target, _ := strings.CutPrefix(v.Annotations[packagesv1.TargetAnnotation], packagesv1.RepositoryKind+" ")
	name, _, _ := strings.Cut(target, ", ")
	r := s.repositories[name]
	return r != nil && r.DeletionTimestamp.IsZero()
}

// goneSince is the time at which the variant lost its target, from its annotation; the current time without a valid annotation.
func (k *sets) goneSince(v *packagesv1.PackageVariant) (since time.Time, isNoted bool) {
	now := k.shared.Clock.Now()
	since, err := time.Parse(time.RFC3339, v.Annotations[packagesv1.TargetGoneAnnotation])
	if err != nil || since.After(now) {
		return now, false
	}
	return since, true
}

// grace is the rest of a variant's grace period.
func (k *sets) grace(obj *packagesv1.PackageVariantSet, v *packagesv1.PackageVariant) time.Duration {
	since, _ := k.goneSince(v)
	return obj.Spec.GetGracePeriod() - k.shared.Clock.Since(since)
}

// mark sets the annotation with the time at which a variant lost its target, or removes it from a variant that has a target again.
func (k *sets) mark(ctx context.Context, obj *packagesv1.PackageVariantSet, v *packagesv1.PackageVariant, s *spread) error {
	isWaiting := s.guard.leaving[v.Name] != nil && !s.guard.isClosed && s.guard.due[v.Name] == nil
	since, isNoted := k.goneSince(v)
	changed := v.DeepCopy()
	switch {
	case isWaiting && !isNoted:
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, packagesv1.TargetGoneAnnotation, since.UTC().Format(time.RFC3339))
	case s.guard.leaving[v.Name] == nil && v.Annotations[packagesv1.TargetGoneAnnotation] != "" && v.DeletionTimestamp.IsZero():
		delete(changed.Annotations, packagesv1.TargetGoneAnnotation)
	default:
		return nil
	}
	err := k.shared.Client.Update(ctx, changed, client.FieldOwner(k.shared.FieldOwner))
	switch {
	case apierrors.IsConflict(err):
		s.late++ // It has changed meanwhile.
		return nil
	case err != nil:
		return fmt.Errorf("annotate PackageVariant %s: %w", v.Name, err)
	}
	k.written.note(client.ObjectKeyFromObject(obj), changed)
	if isWaiting {
		s.guard.vanished = append(s.guard.vanished, v.Name)
	}
	return nil
}

// events returns the events for variants that lost their targets, and for an acknowledged deletion.
func (g *guard) events(about event.Subject) (events []event.Event) {
	if names := g.vanished; len(names) > 0 {
		slices.Sort(names)
		events = append(events, event.Warned(about, packagesv1.TargetGoneReason, fmt.Sprintf(
			"%s without a target will be deleted after spec.deletionGuard.gracePeriod: %s", counted(len(names), "variant"), printable.Line(strings.Join(names, ", "), maxProblemText)), ""))
	}
	if g.acknowledged != "" {
		events = append(events, event.Happened(about, packagesv1.DeletionAcknowledgedReason, fmt.Sprintf(
			"The deletion of %s without a target was acknowledged: %s", counted(len(g.due), "variant"), g.acknowledged), ""))
	}
	return events
}

// letGo deletes the variants that are due. Their own deletionPolicy decides about their packages. It returns how many of them the API
// server has not deleted, and why, unless they have merely changed meanwhile. One that is gone already was counted when it went.
func (k *sets) letGo(ctx context.Context, s *spread) (refused int, err error) {
	for _, v := range s.guard.due {
		unchanged := client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion}
		if s.guard.acknowledged != "" {
			unchanged.ResourceVersion = nil // The acknowledgement is for this object, and is used once.
		}
		failure := k.shared.Client.Delete(ctx, v, unchanged)
		if answer, isAnswer := errors.AsType[*apierrors.StatusError](failure); isAnswer && answer.ErrStatus.Code < http.StatusInternalServerError {
			refused++ // Of any other error it is not known whether the variant is gone.
		}
		switch {
		case failure == nil:
			s.gone++
		case !apierrors.IsConflict(failure) && !apierrors.IsNotFound(failure):
			err = fmt.Errorf("delete PackageVariant %s: %w", v.Name, failure)
		}
	}
	return refused, err
}

// Settle implements kernel.Owner: it deletes variants once the status counts them as gone.
func (k *sets) Settle(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread) error {
	if s.isDone && len(s.guard.due) > 0 {
		refused, err := k.letGo(ctx, s)
		if s.gone > 0 {
			k.shared.Events.Emit(event.Happened(event.About(obj, packagesv1.GroupVersion.WithKind(packagesv1.PackageVariantSetKind)),
				packagesv1.VariantsChangedReason, fmt.Sprintf("Variants: %d deleted", s.gone), ""))
		}
		if err = errors.Join(err, k.refund(ctx, obj, s, refused)); err != nil {
			k.failed.Store(client.ObjectKeyFromObject(obj), err)
		}
	}
	return k.collectPreviews(ctx, obj)
}

// refund takes variants that were not deleted out of the count.
func (k *sets) refund(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread, refused int) error {
	if refused == 0 || s.guard.acknowledged != "" {
		return nil
	}
	gone := obj.Status.DeletionGuard.Gone
	// It depends on the count alone: others may write to the object meanwhile.
	patch := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":"/status/deletionGuard/gone","value":%d},`+
		`{"op":"replace","path":"/status/deletionGuard/gone","value":%d}]`, obj.UID, gone, gone-capped(refused))
	err := k.shared.Client.Status().Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(k.shared.FieldOwner))
	if apierrors.IsInvalid(err) {
		return nil // The count is another one, or too high, which errs on the safe side.
	}
	return client.IgnoreNotFound(err)
}

// failedDeletion says once why variants could not be deleted after the last reconciliation.
func (k *sets) failedDeletion(set types.NamespacedName) error {
	failed, _ := k.failed.LoadAndDelete(set)
	err, _ := failed.(error)
	return err
}
