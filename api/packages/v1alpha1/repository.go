package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *Repository) UnmarshalJSON(data []byte) error {
	type plain Repository
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, RepositoryStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *Repository) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *Repository) SetConditions(conditions []metav1.Condition) { in.Status.Conditions = conditions }

// GetRequeueAfter returns the time between two rounds: DefaultRepositoryInterval when none is set.
func (in *Repository) GetRequeueAfter() time.Duration {
	return orDefault(in.Spec.Interval, DefaultRepositoryInterval)
}

// GetTimeout returns the bound on the work done upstream in one round: DefaultRepositoryTimeout when none is set.
func (in *RepositorySpec) GetTimeout() time.Duration {
	return orDefault(in.Timeout, DefaultRepositoryTimeout)
}

// GetBranch returns the branch that holds what is published: DefaultBranch when none is set.
func (in *RepositorySpec) GetBranch() string { return cmp.Or(in.Branch, DefaultBranch) }

func orDefault(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil {
		return otherwise
	}
	return set.Duration
}
