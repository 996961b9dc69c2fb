package v1beta1

import (
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *ArtifactGenerator) UnmarshalJSON(data []byte) error {
	type plain ArtifactGenerator
	err := decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, ArtifactGeneratorStatus{}, &in.UnreadableStatus))
	in.observe()
	return err
}

// observe notes the generation that Ready speaks about.
func (in *ArtifactGenerator) observe() {
	in.Status.ObservedGeneration = -1
	for _, condition := range in.Status.Conditions {
		if condition.Type == meta.ReadyCondition {
			in.Status.ObservedGeneration = condition.ObservedGeneration
		}
	}
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *ArtifactGenerator) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *ArtifactGenerator) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetRequeueAfter is the time between two looks that nothing else asks for.
func (in *ArtifactGenerator) GetRequeueAfter() time.Duration { return time.Hour }

// IsDisabled tells whether the annotation says that nothing is to be done for the object.
func (in *ArtifactGenerator) IsDisabled() bool {
	return strings.EqualFold(in.Annotations[ReconcileAnnotation], ReconcileDisabled)
}

// GetNamespace is that of the source of a generator in a namespace.
func (in SourceReference) GetNamespace(own string) string {
	if in.Namespace == "" {
		return own
	}
	return in.Namespace
}
