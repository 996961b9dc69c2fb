package v1

import (
	"cmp"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *Bucket) UnmarshalJSON(data []byte) error {
	type plain Bucket
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, BucketStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *Bucket) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *Bucket) SetConditions(conditions []metav1.Condition) { in.Status.Conditions = conditions }

// GetArtifact returns the artifact that status names, or nil.
func (in *Bucket) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the interval at which the bucket is listed.
func (in *Bucket) GetRequeueAfter() time.Duration { return in.Spec.Interval.Duration }

// GetTimeout returns the bound on the upstream work of one attempt: DefaultBucketTimeout when none is set.
func (in *BucketSpec) GetTimeout() time.Duration {
	if in.Timeout == nil {
		return DefaultBucketTimeout
	}
	return in.Timeout.Duration
}

// GetProvider returns the provider: GenericBucketProvider when nothing is set.
func (in *BucketSpec) GetProvider() string { return cmp.Or(in.Provider, GenericBucketProvider) }
