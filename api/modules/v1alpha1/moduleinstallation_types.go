package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ModuleInstallationKind is the kind of a ModuleInstallation as it stands in manifests.
	ModuleInstallationKind = "ModuleInstallation"

	// DefaultInterval is the time between two rounds of a ModuleInstallation that sets no spec.interval.
	DefaultInterval = 10 * time.Minute

	// DefaultRetryInterval is the time until a failed round of a ModuleInstallation that sets no spec.retryInterval is
	// tried again.
	DefaultRetryInterval = time.Minute

	// DefaultTimeout is how long a ModuleInstallation that sets no spec.timeout may take to become healthy.
	DefaultTimeout = 5 * time.Minute

	// DefaultPruneMaxPercent bounds nothing: an upgrade may remove every object of the release before it.
	DefaultPruneMaxPercent = 100
)

// Management says whether an installation acts on its objects.
type Management string

const (
	// ManagementManaged applies, heals and prunes. It is meant when nothing is set.
	ManagementManaged Management = "Managed"
	// ManagementPaused leaves the objects alone, and goes on choosing a release and reporting.
	ManagementPaused Management = "Paused"
)

// AdoptPolicy says which objects an installation takes over that it did not make.
type AdoptPolicy string

const (
	// AdoptIfUnowned takes over what nobody else manages. It is meant when nothing is set.
	AdoptIfUnowned AdoptPolicy = "IfUnowned"
	// AdoptNever takes over nothing.
	AdoptNever AdoptPolicy = "Never"
	// AdoptAlways takes over whatever no other installation has, and removes it like what the installation made.
	AdoptAlways AdoptPolicy = "Always"
)

// ModuleInstallationSpec says which release of which module is installed, and how.
type ModuleInstallationSpec struct {
	// Module says which release of which module is wanted.
	// +required
	Module ModuleRequest `json:"module"`

	// Upgrade says when, and how far, the installation may move from the release that it has.
	// +optional
	Upgrade *UpgradePolicy `json:"upgrade,omitempty"`

	// Config says in what the installation differs from the release as published.
	// +optional
	Config *InstallationConfig `json:"config,omitempty"`

	// Management is 'Managed', or 'Paused': then nothing is applied, healed or pruned, while the choice of a release,
	// health and deletion go on. Taking it back goes on from what is installed.
	// +kubebuilder:validation:Enum=Managed;Paused
	// +kubebuilder:default=Managed
	// +optional
	Management Management `json:"management,omitempty"`

	// Adopt says what becomes of an object of the release that is there already, and that this installation did not make.
	// 'IfUnowned' takes it over if nobody else manages it: no controller that owns it, no Helm, no Flux, no Argo CD.
	// 'Never' takes over nothing, 'Always' everything but the objects of other installations. What is not taken over is
	// an OwnershipConflict. What was taken over is let go of where the rest is deleted, unless this is 'Always'.
	// +kubebuilder:validation:Enum=IfUnowned;Never;Always
	// +kubebuilder:default=IfUnowned
	// +optional
	Adopt AdoptPolicy `json:"adopt,omitempty"`

	// Drift says what others may change in the release's objects.
	// +optional
	Drift *DriftPolicy `json:"drift,omitempty"`

	// Prune says what becomes of objects that a new release, or a new config, no longer holds.
	// +optional
	Prune *PrunePolicy `json:"prune,omitempty"`

	// Force deletes and creates again an object that cannot be changed in place, because a field of it is immutable.
	// Without it, such a change is reported.
	// +optional
	Force bool `json:"force,omitempty"`

	// Deletion says what becomes of the module when this object is deleted.
	// +optional
	Deletion *InstallationDeletion `json:"deletion,omitempty"`

	// ServiceAccountName names the ServiceAccount in the same namespace as which the module's objects are read,
	// applied and deleted. Without it, the operator's settings decide.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// DependsOn lists objects that have to be ready before a release is applied, at the first one and at every other.
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	DependsOn []Dependency `json:"dependsOn,omitempty"`

	// Interval at which the choice and the objects are looked at even when nothing was heard of a change. 10m when
	// nothing is set. Some jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// RetryInterval is the time until a failed round is tried again. 1m when nothing is set.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// Timeout is how long the objects may take to become healthy before the installation counts as failed. 5m when
	// nothing is set. The operator may have set a ceiling, to which it is cut.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Suspend stops all work for this object until it is taken back; what is installed stays as it is.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Dependency is an object that has to be ready first: one in the same namespace, or of a kind that has none.
type Dependency struct {
	// APIVersion of the object: its group and version, such as 'apps/v1'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
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

	// ReadyExpr tells with CEL whether the object is ready, over 'dep', the object, and 'self', this installation.
	// Without it, the usual conventions of status tell.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// ModuleInstallation installs a release of a module and keeps it as published.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mi,categories={sluice,sluice-modules}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Module",type=string,JSONPath=`.status.resolution.module`
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.spec.module.channel`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.current.version`
// +kubebuilder:printcolumn:name="Pending",type=string,JSONPath=`.status.pending.reason`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Desired",type=string,JSONPath=`.status.desired.version`,priority=1
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.status.current.template`,priority=1
// +kubebuilder:printcolumn:name="Catalog",type=string,JSONPath=`.status.resolution.catalog`,priority=1
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.inventory.members`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ModuleInstallation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ModuleInstallationSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ModuleInstallationStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// ModuleInstallationList is a list of ModuleInstallations.
//
// +kubebuilder:object:root=true
type ModuleInstallationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModuleInstallation `json:"items"`
}
