package v1alpha1

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
