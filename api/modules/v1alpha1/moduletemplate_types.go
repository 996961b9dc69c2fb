package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ModuleTemplateKind is the kind of a ModuleTemplate as it stands in manifests.
const ModuleTemplateKind = "ModuleTemplate"

// SupportState says how far the authors of a release stand by it.
type SupportState string

const (
	// SupportSupported is a release without reservations. It is meant when no state is set.
	SupportSupported SupportState = "Supported"
	// SupportDeprecated is a release to move away from. Where a range or 'latest' leaves a choice, another one is
	// preferred; installations of it say so in a condition.
	SupportDeprecated SupportState = "Deprecated"
	// SupportWithdrawn is a release that is installed nowhere anew. Where it runs, it is kept.
	SupportWithdrawn SupportState = "Withdrawn"
)

// ModuleTemplateSpec describes one release of a module.
type ModuleTemplateSpec struct {
	// ModuleName is the module that this is a release of. Immutable once a release of the template was installed. An old
	// template may leave it empty and say it with the label 'operator.kyma-project.io/module-name'.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	ModuleName string `json:"moduleName,omitempty"`

	// Version of the release: SemVer 2.0 in full, without a leading 'v'. Once it was installed it may be raised only,
	// together with the artifact; then this template stands for the new release. An old template may leave it empty: the version is taken from
	// the annotation 'operator.kyma-project.io/module-version', else from artifact.oci.tag, else from the artifact's
	// metadata. A release whose version stays unknown can be chosen by channel or by the template's name only.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?)?$`
	// +kubebuilder:validation:XValidation:rule=`self == "" || isSemver(self)`,message="not a semantic version: its numbers have to fit 64 bits"
	// +optional
	Version string `json:"version,omitempty"`

	// Channel that the release claims, such as 'regular'; 'none' or empty claims no channel. A release in a channel is
	// chosen by that channel or by the template's name; for a version, range or 'latest' to find it as well, another
	// template publishes it without a channel. Two claims of one channel cancel each other, and where a Module lists
	// the channel, the Module decides. Immutable once a release of the template was installed.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	Channel string `json:"channel,omitempty"`

	// Artifact says where the release's manifests are. Once the version was installed, what it holds belongs to it: digest
	// or commit, layer and path change together with a higher version only. How it is reached may change at any time.
	// +required
	Artifact TemplateArtifact `json:"artifact"`

	// ManagedResources are the kinds whose objects are the data of the module's users. While there are any, an
	// installation in deletion mode Block is not removed.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=version
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ManagedResources []ManagedResource `json:"managedResources,omitempty"`

	// Deletion says what becomes of the module when an installation that does not say it itself is deleted.
	// +optional
	Deletion *TemplateDeletion `json:"deletion,omitempty"`

	// DefaultConfig is an object that is created once for each installation, after the rest of the release. It is the
	// user's from then on: neither overwritten, nor healed, nor created again.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	DefaultConfig *runtime.RawExtension `json:"defaultConfig,omitempty"`

	// Health says how the health of kinds is told that do not follow the usual conventions of status.
	// +optional
	Health *TemplateHealth `json:"health,omitempty"`

	// Support says how far the authors of the release stand by it. It may be changed at any time.
	// +optional
	Support *TemplateSupport `json:"support,omitempty"`
}

// TemplateDeletion says what becomes of the module when an installation is deleted.
type TemplateDeletion struct {
	// Mode is 'Block', which removes the module and waits until its users' data is gone, or 'Orphan', which leaves
	// everything in place.
	// +kubebuilder:validation:Enum=Block;Orphan
	// +kubebuilder:default=Block
	// +optional
	Mode DeletionMode `json:"mode,omitempty"`
}

// TemplateHealth says how the health of some kinds is told.
type TemplateHealth struct {
	// Expressions for kinds that do not follow the usual conventions of status. The objects of all other kinds are
	// healthy by these conventions.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Expressions []HealthExpression `json:"expressions,omitempty"`
}

// HealthExpression tells the health of one kind's objects with CEL, over the object's own fields: 'status.phase', say.
// Failed is asked first, then InProgress, then Current; an object of which none holds is in progress.
type HealthExpression struct {
	// APIVersion of the kind: its group and version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind that the expressions are for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Current holds when the object is healthy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Current string `json:"current"`

	// InProgress holds while the object is on its way.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	InProgress string `json:"inProgress,omitempty"`

	// Failed holds when the object will not become healthy by waiting.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Failed string `json:"failed,omitempty"`
}

// TemplateSupport says how far the authors of a release stand by it.
type TemplateSupport struct {
	// State is 'Supported', 'Deprecated', which other releases are preferred to, or 'Withdrawn', which is installed
	// nowhere anew.
	// +kubebuilder:validation:Enum=Supported;Deprecated;Withdrawn
	// +kubebuilder:default=Supported
	// +optional
	State SupportState `json:"state,omitempty"`

	// Message tells users why, and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Until is the last day of support, as in '2027-06-30', by UTC. From the next day on, a supported release counts as
	// deprecated.
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	// +optional
	Until string `json:"until,omitempty"`

	// ReplacedBy is the version to move to.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
	// +optional
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// ModuleTemplateStatus is what was last seen of a ModuleTemplate.
type ModuleTemplateStatus struct {
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

	// ModuleName is the module as it was found: from spec, or from the label.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ModuleName string `json:"moduleName,omitempty"`

	// Version as it was found: from spec, the annotation, the tag or the artifact's metadata. Empty while unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// ArtifactVersion is the version that the artifact's metadata states, where it was looked at because the template
	// itself states none.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ArtifactVersion string `json:"artifactVersion,omitempty"`

	// Channel that points at the release by this template's claim. Empty without a claim, and while it is overridden
	// or contested.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Channel string `json:"channel,omitempty"`

	// SourceRef is the object that the release's artifact comes from, while the release is wanted.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// Revision of the artifact, such as '1.4.2@sha256:…'.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Revision string `json:"revision,omitempty"`

	// Digest of the artifact: that of the archive which is installed once it was fetched, and before that the digest or
	// commit that the artifact is pinned to.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Digest string `json:"digest,omitempty"`

	// Content names what this version was first seen to install: the pin of the artifact, and what of it is used. Equal
	// contents have equal names, and other contents under the same version are not used.
	// +kubebuilder:validation:MaxLength=1536
	// +optional
	Content string `json:"content,omitempty"`

	// Since is when the template first stated this version: when it was created, or the version raised. Of two
	// templates with one version and different contents, the older one is in its right.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Installed is what the template stood for when an installation last began to apply it; absent while none has. That
	// version keeps its content, and the template its module and channel. Before that, all of it may be edited.
	// +optional
	Installed *InstalledVersion `json:"installed,omitempty"`

	// UsedBy is the number of installations that run the release, are about to, or ran it before.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	UsedBy int32 `json:"usedBy,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// InstalledVersion is a version of a template that installations have begun to apply.
type InstalledVersion struct {
	// Version, as status.version has it; empty where it was unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// Content, as status.content has it.
	// +kubebuilder:validation:MaxLength=1536
	// +optional
	Content string `json:"content,omitempty"`
}

// ModuleTemplate is one release of a module.
//
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.installed) || oldSelf.spec.?moduleName.orValue("") == "" || (has(self.spec.moduleName) && self.spec.moduleName == oldSelf.spec.moduleName)`,message="moduleName is immutable once the template was installed",fieldPath=.spec.moduleName
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.installed) || (has(self.spec.channel) && self.spec.channel != "none" ? self.spec.channel : "") == (has(oldSelf.spec.channel) && oldSelf.spec.channel != "none" ? oldSelf.spec.channel : "")`,message="channel is immutable once the template was installed",fieldPath=.spec.channel
// +kubebuilder:validation:XValidation:rule=`oldSelf.spec.?version.orValue("") == "" || oldSelf.spec.version != oldSelf.?status.?installed.?version.orValue("") || (has(self.spec.version) && (self.spec.version == oldSelf.spec.version || (isSemver(self.spec.version) && semver(self.spec.version).isGreaterThan(semver(oldSelf.spec.version)))))`,message="a version that was installed may only become higher, by the precedence of SemVer 2.0",fieldPath=.spec.version
// +kubebuilder:validation:XValidation:rule=`oldSelf.spec.?version.orValue("") == "" || oldSelf.spec.version != oldSelf.?status.?installed.?version.orValue("") || (has(self.spec.version) && self.spec.version == oldSelf.spec.version) == (has(self.spec.artifact.oci) == has(oldSelf.spec.artifact.oci) && has(self.spec.artifact.git) == has(oldSelf.spec.artifact.git) && (!has(self.spec.artifact.oci) || (self.spec.artifact.oci.digest == oldSelf.spec.artifact.oci.digest && (has(self.spec.artifact.oci.layerSelector) ? self.spec.artifact.oci.layerSelector.mediaType : "") == (has(oldSelf.spec.artifact.oci.layerSelector) ? oldSelf.spec.artifact.oci.layerSelector.mediaType : ""))) && (!has(self.spec.artifact.git) || self.spec.artifact.git.commit == oldSelf.spec.artifact.git.commit) && (!has(self.spec.artifact.sourceRef) || self.spec.artifact.sourceRef == oldSelf.spec.artifact.sourceRef) && (has(self.spec.artifact.path) ? self.spec.artifact.path : "") == (has(oldSelf.spec.artifact.path) ? oldSelf.spec.artifact.path : ""))`,message="a version that was installed keeps its content: digest or commit, layer, path and sourceRef change together with a higher version, and a higher version needs other content",fieldPath=.spec.artifact
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mt,categories={sluice,sluice-modules}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Module",type=string,JSONPath=`.status.moduleName`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.spec.channel`
// +kubebuilder:printcolumn:name="Support",type=string,JSONPath=`.spec.support.state`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.usedBy`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.digest`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ModuleTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ModuleTemplateSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ModuleTemplateStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// ModuleTemplateList is a list of ModuleTemplates.
//
// +kubebuilder:object:root=true
type ModuleTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModuleTemplate `json:"items"`
}
