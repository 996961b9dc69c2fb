package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *PackageVariant) UnmarshalJSON(data []byte) error {
	type plain PackageVariant
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, PackageVariantStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *PackageVariant) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *PackageVariant) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetRequeueAfter returns the time between two rounds: DefaultVariantInterval when none is set.
func (in *PackageVariant) GetRequeueAfter() time.Duration {
	return orDefault(in.Spec.Interval, DefaultVariantInterval)
}

// GetTimeout returns the bound on one round: DefaultVariantTimeout when none is set.
func (in *PackageVariantSpec) GetTimeout() time.Duration {
	return orDefault(in.Timeout, DefaultVariantTimeout)
}

// GetDownstreamPackage returns the package's path downstream: that of upstream when none is set.
func (in *PackageVariantSpec) GetDownstreamPackage() string {
	return cmp.Or(in.Downstream.Package, in.Upstream.Package)
}

// GetAdoptionPolicy returns whether an existing package is taken over: AdoptNone when nothing is set.
func (in *PackageVariantSpec) GetAdoptionPolicy() AdoptionPolicy {
	return cmp.Or(in.AdoptionPolicy, AdoptNone)
}

// GetDeletionPolicy returns what becomes of the package in the end: DeletionDelete when nothing is set.
func (in *PackageVariantSpec) GetDeletionPolicy() DeletionPolicy {
	return cmp.Or(in.DeletionPolicy, DeletionDelete)
}

// GetApprovalPolicy returns which changes the controller approves itself: ApprovalManual when nothing is set.
func (in *PackageVariantSpec) GetApprovalPolicy() ApprovalPolicy {
	if in.Approval == nil {
		return ApprovalManual
	}
	return cmp.Or(in.Approval.Policy, ApprovalManual)
}

// GetReview returns where changes are reviewed: nil when nothing is set.
func (in *PackageVariantSpec) GetReview() *Review {
	if in.Approval == nil {
		return nil
	}
	return in.Approval.Review
}

// GetConflictPolicy returns whose value a draft gets in a conflict. The default is ConflictLocal.
func (in *PackageVariantSpec) GetConflictPolicy() ConflictPolicy {
	return cmp.Or(in.ConflictPolicy, ConflictLocal)
}
