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

// PrereleasePolicy says which prereleases a range or 'latest' may choose.
type PrereleasePolicy string

const (
	// PrereleasesExclude leaves all prereleases out. It is meant when nothing is set.
	PrereleasesExclude PrereleasePolicy = "Exclude"
	// PrereleasesInclude lets every prerelease in.
	PrereleasesInclude PrereleasePolicy = "Include"
	// PrereleasesListed lets in those whose first identifier is listed: 'rc' for 1.0.0-rc.1.
	PrereleasesListed PrereleasePolicy = "Listed"
)

// UpgradeMode says when an installation takes another release.
type UpgradeMode string

const (
	// UpgradeAutomatic takes it as soon as it is chosen. It is meant when no mode is set.
	UpgradeAutomatic UpgradeMode = "Automatic"
	// UpgradeManual installs the first release by itself, and takes every other one once its plan is approved.
	UpgradeManual UpgradeMode = "Manual"
	// UpgradeNever installs the first release by itself, and keeps it.
	UpgradeNever UpgradeMode = "Never"
)

// UpgradeStep is the size of the step between two versions.
type UpgradeStep string

const (
	// StepPatch stays within major and minor version.
	StepPatch UpgradeStep = "Patch"
	// StepMinor stays within the major version.
	StepMinor UpgradeStep = "Minor"
	// StepMajor bounds nothing. It is meant when no step is set.
	StepMajor UpgradeStep = "Major"
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

// ModuleRequest says which release of which module is wanted. With a name and no more, the module's default channel is
// followed, or else its latest release.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.templateRef)",message="name or templateRef has to be set"
// +kubebuilder:validation:XValidation:rule="[has(self.channel), has(self.version), has(self.range), has(self.latest) && self.latest].filter(x, x).size() <= 1",message="at most one of channel, version, range and latest may be set"
// +kubebuilder:validation:XValidation:rule="!has(self.templateRef) || !(has(self.channel) || has(self.version) || has(self.range) || (has(self.latest) && self.latest))",message="templateRef selects one release already: channel, version, range and latest have no place beside it"
type ModuleRequest struct {
	// Name of the module.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// TemplateRef names a release by its ModuleTemplate, in the namespace that catalog leads to. If name is set as well,
	// the template has to be one of that module.
	// +optional
	TemplateRef *LocalReference `json:"templateRef,omitempty"`

	// Catalog is where releases are looked for: 'Local', this object's namespace; 'System', the operator's; or 'Auto',
	// this object's if it has the module or template, else the operator's. What Auto found is kept until this field
	// changes.
	// +kubebuilder:validation:Enum=Auto;Local;System
	// +kubebuilder:default=Auto
	// +optional
	Catalog Catalog `json:"catalog,omitempty"`

	// Channel to follow, such as 'regular'.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'none'",message="'none' is no channel"
	// +optional
	Channel string `json:"channel,omitempty"`

	// Version to install: SemVer 2.0 in full. Build metadata makes no difference.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
	// +kubebuilder:validation:XValidation:rule="isSemver(self)",message="not a semantic version: its numbers have to fit 64 bits"
	// +optional
	Version string `json:"version,omitempty"`

	// Range of versions, of which the highest is installed: '>=1.4.0 <2.0.0', '~1.4.0', '1.x'. Comparators are joined
	// by a space or comma where all have to hold, and by '||' where one has to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.+*=!<>~^|, -]+$`
	// +optional
	Range string `json:"range,omitempty"`

	// Latest installs the highest release of all.
	// +optional
	Latest bool `json:"latest,omitempty"`

	// Prereleases says which prereleases range and latest may choose. Those that a channel, version or template names
	// are always meant.
	// +optional
	Prereleases *Prereleases `json:"prereleases,omitempty"`
}

// Prereleases says which prereleases a range or 'latest' may choose.
//
// +kubebuilder:validation:XValidation:rule="(has(self.policy) && self.policy == 'Listed') == (has(self.identifiers) && self.identifiers.size() > 0)",message="identifiers go with policy Listed, and with no other"
type Prereleases struct {
	// Policy is 'Exclude', 'Include', or 'Listed' for those whose first identifier is in identifiers.
	// +kubebuilder:validation:Enum=Exclude;Include;Listed
	// +kubebuilder:default=Exclude
	// +optional
	Policy PrereleasePolicy `json:"policy,omitempty"`

	// Identifiers that a prerelease may begin with: 'rc' lets in 1.0.0-rc.1.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z-]+$`
	// +optional
	Identifiers []string `json:"identifiers,omitempty"`
}

// UpgradePolicy says when, and how far, an installation may move from the release that it has.
type UpgradePolicy struct {
	// Mode is 'Automatic'; 'Manual', where every release after the first waits for approve; or 'Never'. In the latter two,
	// an edit of the spec that would remove objects waits for approve as well.
	// +kubebuilder:validation:Enum=Automatic;Manual;Never
	// +kubebuilder:default=Automatic
	// +optional
	Mode UpgradeMode `json:"mode,omitempty"`

	// MaxStep is the largest step that is taken at once, measured from the release that is installed. A larger one is
	// held. 'Major', which is meant when nothing is set, bounds nothing.
	// +kubebuilder:validation:Enum=Patch;Minor;Major
	// +optional
	MaxStep UpgradeStep `json:"maxStep,omitempty"`

	// AllowDowngradeTo is the one version, build metadata included, that may be gone back to, or that a one-way channel
	// may be left for. It allows that version alone, and nothing while another one is selected. What ran before, in
	// status.previous, may be gone back to without it, if a version or template selects it.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
	// +kubebuilder:validation:XValidation:rule="isSemver(self)",message="not a semantic version: its numbers have to fit 64 bits"
	// +optional
	AllowDowngradeTo string `json:"allowDowngradeTo,omitempty"`

	// Approve is the digest of the plan in status.pending that may be carried out: in mode 'Manual', and in mode 'Never'
	// that of an edit. Another plan has another digest.
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +optional
	Approve string `json:"approve,omitempty"`
}

// DriftPolicy says what others may change in a release's objects.
type DriftPolicy struct {
	// Ignore names fields that others own. An object is created with them, and is never applied with them again: a value
	// that somebody sets stays.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftIgnore names fields of some objects.
type DriftIgnore struct {
	// Target selects the objects, as they are applied. Without it, all are meant.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`

	// Paths are JSON pointers to fields, such as '/spec/replicas'. A '/' in a key is written '~1', and an item of a list
	// is named by its place in the release's manifest. What is below a field is meant with it.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:XValidation:rule="self.all(path, !path.matches('^/(apiVersion|kind|metadata(/(name|namespace|labels))?)$'))",message="what names the object, and its metadata and labels as a whole, cannot be left out"
	// +required
	Paths []string `json:"paths"`
}

// PrunePolicy says what becomes of objects that are no longer part of an installation.
type PrunePolicy struct {
	// Enabled removes them, once the new release is healthy. Otherwise they stay, and stay in the inventory.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// MaxPercent is the largest part of the installation's objects that may be removed at once, in percent. If more
	// would go, none does. 100, which is meant when nothing is set, bounds nothing.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxPercent *int32 `json:"maxPercent,omitempty"`
}

// InstallationDeletion says what becomes of the module when its installation is deleted.
type InstallationDeletion struct {
	// Mode is 'Block', which removes the module and waits until its users' data is gone, or 'Orphan', which leaves
	// everything in place. Empty, the template's mode counts.
	// +kubebuilder:validation:Enum="";Block;Orphan
	// +optional
	Mode DeletionMode `json:"mode,omitempty"`
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
