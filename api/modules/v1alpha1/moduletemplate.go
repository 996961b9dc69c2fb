package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *ModuleTemplate) UnmarshalJSON(data []byte) error {
	type plain ModuleTemplate
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, ModuleTemplateStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *ModuleTemplate) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *ModuleTemplate) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetModuleName returns the module's name: that of the spec, or else of the label.
func (in *ModuleTemplate) GetModuleName() string {
	return cmp.Or(in.Spec.ModuleName, in.Labels[ModuleNameLabel])
}

// GetChannel returns the channel that the template claims, or "" when it claims none.
func (in *ModuleTemplateSpec) GetChannel() string {
	if in.Channel == NoChannel {
		return ""
	}
	return in.Channel
}

// GetDeletionMode returns what becomes of the module when an installation is deleted: DeletionBlock when nothing is set.
func (in *ModuleTemplateSpec) GetDeletionMode() DeletionMode {
	if in.Deletion == nil || in.Deletion.Mode == "" {
		return DeletionBlock
	}
	return in.Deletion.Mode
}

// GetSupportState returns how far the release is supported: SupportSupported when nothing is set.
func (in *ModuleTemplateSpec) GetSupportState() SupportState {
	if in.Support == nil || in.Support.State == "" {
		return SupportSupported
	}
	return in.Support.State
}
