package v1alpha1

import (
	"cmp"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *PackageRevision) UnmarshalJSON(data []byte) error {
	type plain PackageRevision
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, PackageRevisionStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *PackageRevision) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *PackageRevision) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *PackageRevision) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the time between two rounds: RevisionInterval.
func (in *PackageRevision) GetRequeueAfter() time.Duration { return RevisionInterval }

// GetLifecycle returns the lifecycle that is asked for: LifecycleDraft when nothing is set.
func (in *PackageRevisionSpec) GetLifecycle() Lifecycle { return cmp.Or(in.Lifecycle, LifecycleDraft) }
