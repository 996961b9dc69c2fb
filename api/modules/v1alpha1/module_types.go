package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ModuleKind is the kind of a Module as it stands in manifests.
const ModuleKind = "Module"

// ModuleSpec says where a module's channels point, and who may install it.
type ModuleSpec struct {
	// Description tells users what the module is for.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Description string `json:"description,omitempty"`

	// DefaultChannel is followed by installations that select nothing. Without it, these take the latest release.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'none'",message="'none' is no channel"
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`

	// Channels are names that point at one version each. A template's claim of a channel in this list is overridden.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Channels []Channel `json:"channels,omitempty"`

	// Consumers says who may install the module from the system's catalogue. Without it, everyone may. Installations
	// that lose the permission keep what they have.
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`
}

// Channel is a name that points at one version.
type Channel struct {
	// Name of the channel, such as 'regular'.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'none'",message="'none' is no channel"
	// +required
	Name string `json:"name"`

	// Version that the channel points at: SemVer 2.0 in full.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
	// +kubebuilder:validation:XValidation:rule="isSemver(self)",message="not a semantic version: its numbers have to fit 64 bits"
	// +required
	Version string `json:"version"`

	// Suspended stops the channel: installations on it stay as they are, and nothing is installed by it anew.
	// +optional
	Suspended bool `json:"suspended,omitempty"`

	// Message tells users of the channel something, such as why it is suspended.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// OneWay says that an installation which took a release from this channel cannot go over to another one, unless
	// upgrade.allowDowngradeTo names the release that it would get there. It is for releases that change stored data.
	// +optional
	OneWay bool `json:"oneWay,omitempty"`
}

// Consumers says who may install a module from the system's catalogue.
type Consumers struct {
	// NamespaceSelector selects the namespaces by their labels; an empty one selects all.
	// +required
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
}

// ModuleStatus is what was last seen of a Module and its releases.
type ModuleStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Channels are all channels of the module, those that templates claim among them, and what each leads to.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Channels []ChannelStatus `json:"channels,omitempty"`

	// Latest is the highest release that is ready, supported and no prerelease.
	// +optional
	Latest *ReleaseName `json:"latest,omitempty"`

	// Releases are the module's releases, the highest first. Only the first 100 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Releases []ReleaseStatus `json:"releases,omitempty"`

	// Installations is the number of installations of the module. It lags behind by some seconds.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Installations int32 `json:"installations,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// ChannelStatus is what a channel leads to.
type ChannelStatus struct {
	// Name of the channel.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// Version that the channel points at; empty where it is unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// Template is the ModuleTemplate of that release; empty while there is none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// Digest of the release's artifact; empty until it is known.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Digest string `json:"digest,omitempty"`

	// Ready says whether an installation can be made by this channel.
	// +required
	Ready bool `json:"ready"`

	// Reason says in one word why not, such as 'ChannelTargetMissing'.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says why not; without a reason, it is what the Module says of the channel.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Installations is the number of installations that follow the channel. It lags behind by some seconds.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Installations int32 `json:"installations,omitempty"`
}

// ReleaseName names a release of a module.
type ReleaseName struct {
	// Version of the release.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// Template is the name of the ModuleTemplate.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Template string `json:"template"`
}

// ReleaseStatus is one release of a module.
type ReleaseStatus struct {
	ReleaseName `json:",inline"`

	// State is how far the release is supported.
	// +kubebuilder:validation:Enum=Supported;Deprecated;Withdrawn
	// +optional
	State SupportState `json:"state,omitempty"`

	// Ready says whether the release can be chosen.
	// +required
	Ready bool `json:"ready"`

	// Channels that point at the release.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Channels []string `json:"channels,omitempty"`
}

// Module says where the channels of the module of its name point. It is optional: without it, the channels are those
// that templates claim.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mod,categories={sluice,sluice-modules}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="the name has to be a module's: a DNS label of 63 characters at most"
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.defaultChannel`
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latest.version`
// +kubebuilder:printcolumn:name="Installations",type=integer,JSONPath=`.status.installations`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Module struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ModuleSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ModuleStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// ModuleList is a list of Modules.
//
// +kubebuilder:object:root=true
type ModuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Module `json:"items"`
}
