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
func (in *OCIRepository) UnmarshalJSON(data []byte) error {
	type plain OCIRepository
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, OCIRepositoryStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *OCIRepository) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *OCIRepository) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *OCIRepository) GetArtifact() *meta.Artifact { return in.Status.Artifact }

// GetRequeueAfter returns the interval at which upstream is asked.
func (in *OCIRepository) GetRequeueAfter() time.Duration { return in.Spec.Interval.Duration }

// GetLayerMediaType returns the media type of the layer to take, or "" when the first layer is.
func (in *OCIRepository) GetLayerMediaType() string {
	if in.Spec.LayerSelector == nil {
		return ""
	}
	return in.Spec.LayerSelector.MediaType
}

// GetLayerOperation returns what becomes of the layer: OCILayerExtract when nothing is set.
func (in *OCIRepository) GetLayerOperation() string {
	if in.Spec.LayerSelector == nil || in.Spec.LayerSelector.Operation == "" {
		return OCILayerExtract
	}
	return in.Spec.LayerSelector.Operation
}

// GetTimeout returns the bound on the upstream work of one attempt: DefaultOCITimeout when none is set.
func (in *OCIRepositorySpec) GetTimeout() time.Duration {
	if in.Timeout == nil {
		return DefaultOCITimeout
	}
	return in.Timeout.Duration
}

// GetProvider returns where credentials come from: GenericOCIProvider when nothing is set.
func (in *OCIRepositorySpec) GetProvider() string {
	return cmp.Or(in.Provider, GenericOCIProvider)
}
