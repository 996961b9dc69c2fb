package v1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *ExternalArtifact) UnmarshalJSON(data []byte) error {
	type plain ExternalArtifact
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, ExternalArtifactStatus{}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *ExternalArtifact) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *ExternalArtifact) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetArtifact returns the artifact that status names, or nil.
func (in *ExternalArtifact) GetArtifact() *meta.Artifact { return in.Status.Artifact }
