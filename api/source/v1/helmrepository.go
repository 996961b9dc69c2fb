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
func (in *HelmRepository) UnmarshalJSON(data []byte) error {
	type plain HelmRepository
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, HelmRepositoryStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *HelmRepository) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *HelmRepository) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *HelmRepository) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the interval at which upstream is asked: DefaultHelmInterval when none is set.
func (in *HelmRepository) GetRequeueAfter() time.Duration {
	return cmp.Or(in.Spec.Interval.Duration, DefaultHelmInterval)
}

// GetTimeout returns the bound on the upstream work of one attempt: DefaultHelmTimeout when none is set.
func (in *HelmRepositorySpec) GetTimeout() time.Duration {
	if in.Timeout == nil {
		return DefaultHelmTimeout
	}
	return in.Timeout.Duration
}

// GetType returns the kind of server that the charts lie on: HelmRepositoryTypeDefault when nothing is set.
func (in *HelmRepositorySpec) GetType() string {
	return cmp.Or(in.Type, HelmRepositoryTypeDefault)
}

// GetProvider returns where a registry's credentials come from: GenericOCIProvider when nothing is set.
func (in *HelmRepositorySpec) GetProvider() string {
	return cmp.Or(in.Provider, GenericOCIProvider)
}
