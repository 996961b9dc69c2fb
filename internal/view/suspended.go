package view

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
)

// Annotations that tell of a suspended object who suspended it, why and when. They are notes of people for people: whoever
// edits the object may write anything into them.
const (
	SuspendedBy     = "sluice.dev/suspended-by"
	SuspendedReason = "sluice.dev/suspended-reason"
	SuspendedAt     = "sluice.dev/suspended-at"
)

// IsSuspended says that nothing is to be done for the object: by its spec, or by a generator's annotation.
func IsSuspended(obj *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	return suspended || obj.GetKind() == extensionsv1.ArtifactGeneratorKind &&
		strings.EqualFold(obj.GetAnnotations()[extensionsv1.ReconcileAnnotation], extensionsv1.ReconcileDisabled)
}

// suspended tells who suspended the object and why, as far as it is noted.
func (f *Fact) suspended(obj *unstructured.Unstructured) {
	f.State, f.Since = Suspended, time.Time{}
	if at, err := time.Parse(time.RFC3339, obj.GetAnnotations()[SuspendedAt]); err == nil {
		f.Since = at
	}
	if note := SuspendedNote(obj); note != "" {
		f.Message = "Suspended" + note
	}
}

// SuspendedNote is ' by WHO: WHY', or what is noted of it.
func SuspendedNote(obj *unstructured.Unstructured) string {
	note := ""
	if by := obj.GetAnnotations()[SuspendedBy]; by != "" {
		note = " by " + by
	}
	if why := obj.GetAnnotations()[SuspendedReason]; why != "" {
		note += ": " + why
	}
	return note
}
