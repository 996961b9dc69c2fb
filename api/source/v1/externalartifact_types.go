package v1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExternalArtifactKind is the kind of an ExternalArtifact as it stands in manifests.
const ExternalArtifactKind = "ExternalArtifact"

// ExternalArtifactSpec says who made the artifact.
type ExternalArtifactSpec struct {
	// SourceRef names the object that the artifact was made for. It is information: nobody follows it.
	// +optional
	SourceRef *meta.NamespacedObjectKindReference `json:"sourceRef,omitempty"`
}

// ExternalArtifactStatus is what the maker of the artifact says about it.
type ExternalArtifactStatus struct {
	// Artifact is where the maker serves the artifact, and what it is.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// Conditions hold the state of the object, as its maker sees it.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ExternalArtifact is an artifact that another controller makes and serves. Nothing here writes one that it has not made.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ea,categories={all,fluxcd,fluxcd-sources}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
// +kubebuilder:printcolumn:name="Source",type="string",JSONPath=".spec.sourceRef.name",description=""
type ExternalArtifact struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ExternalArtifactSpec   `json:"spec,omitempty"`
	Status ExternalArtifactStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// ExternalArtifactList is a list of ExternalArtifacts.
//
// +kubebuilder:object:root=true
type ExternalArtifactList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExternalArtifact `json:"items"`
}
