package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout says in which order a new revision reaches the targets of a set: what upstream has become, or an edit of the templates.
type Rollout struct {
	// Waves take the new revision one after the other. A target is of the first wave that selects it; those that none selects
	// come last.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +required
	Waves []Wave `json:"waves"`

	// Gates have to hold for each wave that is done, before the next one begins and as long as it goes on.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Gates []Gate `json:"gates,omitempty"`

	// OnFailure says what a variant does that fails with the new revision: with 'Stop', no other takes it until it is well;
	// with 'Continue', nobody waits for it.
	// +kubebuilder:validation:Enum=Stop;Continue
	// +kubebuilder:default=Stop
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// PreviewApproval holds a new revision until its preview is approved: with 'Edits', one that is an edit of the targets or
	// their templates; with 'All', also what is new upstream. The first revision of a new set is not held. Who approves puts
	// status.preview.digest into the annotation 'packages.sluice.dev/approved-preview'.
	// +kubebuilder:validation:Enum=Edits;All
	// +optional
	PreviewApproval PreviewApproval `json:"previewApproval,omitempty"`
}

// OnFailure says what becomes of a rollout in which a variant fails.
type OnFailure string

const (
	// FailureStops is the OnFailure that stops the rollout.
	FailureStops OnFailure = "Stop"
	// FailureContinues is the OnFailure that passes over the variant.
	FailureContinues OnFailure = "Continue"
)

// Wave is a part of the targets.
type Wave struct {
	// Name of the wave.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// Selector selects targets by their labels. Without it, all that are left are of this wave.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// MaxInFlight is how many of the wave's variants are changed at once: a number, or a percentage of the wave, rounded up.
	// Without it, all are.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 1 : string(self).matches('^(100|[1-9][0-9]?)%$')",message="has to be a number of 1 at least, or a percentage from 1% to 100%"
	// +optional
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`

	// Pause holds the rollout before this wave, and within it, until it is taken back.
	// +optional
	Pause bool `json:"pause,omitempty"`

	// Soak is how long the wave has to be done before the next one begins.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`
}

// Gate is what has to hold for a wave that is done. It is one of its fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.readyExpr) != has(self.object)",message="exactly one of readyExpr and object has to be set"
type Gate struct {
	// ReadyExpr is an expression in CEL that has to be true for each of the wave's targets. It may use what those of a
	// template may.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ReadyExpr string `json:"readyExpr,omitempty"`

	// Object that has to be there and be ready, as its status says. It is in the set's namespace, or in none where its kind
	// has none, and read as the set's ServiceAccount.
	// +optional
	Object *GateObject `json:"object,omitempty"`
}

// GateObject is an object whose readiness is a gate.
type GateObject struct {
	// APIVersion of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// RolloutStatus is how far a rollout is. It is a report: what is decided by is in the set's ControllerRevisions.
type RolloutStatus struct {
	// Revision is the ControllerRevision that is rolled out.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`

	// Upstream is the revision of the package in it.
	// +optional
	Upstream *UpstreamStatus `json:"upstream,omitempty"`

	// Waves are as in the spec. What no wave selects is '(others)'.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=33
	// +optional
	Waves []WaveStatus `json:"waves,omitempty"`
}

// WaveState is how far a wave is.
type WaveState string

const (
	// WaveEmpty is a wave without targets. It is passed over.
	WaveEmpty WaveState = "Empty"
	// WaveWaits is a wave that may not begin, or not go on; the reason says why.
	WaveWaits WaveState = "Waiting"
	// WaveProgresses is a wave whose variants take the new revision.
	WaveProgresses WaveState = "Progressing"
	// WaveFails is a wave with a variant that fails, which stops it and those behind it.
	WaveFails WaveState = "Failed"
	// WaveDone is a wave whose variants are published as the new revision.
	WaveDone WaveState = "Done"
)

// WaveStatus is how far a wave is.
type WaveStatus struct {
	// Name of the wave.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// State is 'Empty', 'Waiting', 'Progressing', 'Failed' or 'Done'.
	// +kubebuilder:validation:Enum=Empty;Waiting;Progressing;Failed;Done
	// +required
	State WaveState `json:"state"`

	// Reason says what the wave waits for, in one word.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says what it waits for.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// Since is when the state and its reason were first seen.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Targets is how many there are.
	// +optional
	Targets int32 `json:"targets"`

	// Updated is how many of their variants have the new revision.
	// +optional
	Updated int32 `json:"updated"`

	// Published is how many of these are published with it.
	// +optional
	Published int32 `json:"published"`
}

// Reasons of a WaveStatus.
const (
	// WaveReasonPrevious: a wave before this one is not done.
	WaveReasonPrevious = "PreviousWave"
	// WaveReasonPaused: the wave is paused in the spec.
	WaveReasonPaused = "Paused"
	// WaveReasonSoaking: the wave before this one is not done for long enough.
	WaveReasonSoaking = "Soaking"
	// WaveReasonGate: a gate does not hold for a wave before this one.
	WaveReasonGate = "GateClosed"
	// WaveReasonPublication: variants of the wave have the new revision, and are not published with it.
	WaveReasonPublication = "NotPublished"
	// WaveReasonFailure: a variant of the wave fails with the new revision.
	WaveReasonFailure = "VariantFailed"
)
