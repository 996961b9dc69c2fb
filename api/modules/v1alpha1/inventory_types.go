package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// InventoryKind is the kind of an Inventory as it stands in manifests.
	InventoryKind = "Inventory"

	// MaxMembers is how many objects one installation may have. With names of usual length a member takes 200 bytes, so
	// that 5,000 fit into 1 MiB, and MaxMembers into MaxMembersBytes. With longer names fewer do.
	MaxMembers = 7500

	// MaxMembersBytes is how much its members may take as JSON, of the 1.5 MiB that etcd takes of one object.
	MaxMembersBytes = 1_500_000

	// MaxManagedResources is how many kinds of users' data an installation may have: those of its release, and those of
	// releases before it while something of them is left. A template may have 64.
	MaxManagedResources = 128
)

// Phase is what an installation is at.
type Phase string

const (
	// PhaseInstalling: the first release is being applied.
	PhaseInstalling Phase = "Installing"
	// PhaseInstalled: a release is applied, and nothing else is being done than keeping it as published.
	PhaseInstalled Phase = "Installed"
	// PhaseUpgrading: another release, or another config, is being applied.
	PhaseUpgrading Phase = "Upgrading"
	// PhaseDeleting: the members are being removed for good.
	PhaseDeleting Phase = "Deleting"
	// PhaseOrphaning: the members are being let go of, because the installation is deleted in mode Orphan.
	PhaseOrphaning Phase = "Orphaning"
)

// AttemptStage is how far an attempt has come.
type AttemptStage string

const (
	// StageApplying: members are being applied. How many were is not known.
	StageApplying AttemptStage = "Applying"
	// StageWaiting: all members were applied, and have to become healthy.
	StageWaiting AttemptStage = "Waiting"
	// StagePruning: all members are healthy, and those that are no longer needed are being removed.
	StagePruning AttemptStage = "Pruning"
)

// MemberState is what is known of a member.
type MemberState string

const (
	// MemberApplied: the object was applied, and the API server confirmed it. It is the empty state, to save space.
	MemberApplied MemberState = ""
	// MemberPending: the object is about to be applied, for the first time. It may exist or not.
	MemberPending MemberState = "Pending"
	// MemberDeleting: the release that is being applied has it no more, or it is about to be deleted. It may exist or not.
	MemberDeleting MemberState = "Deleting"
)

// InventoryData is what the controller has to remember of one installation.
//
// +kubebuilder:validation:XValidation:rule="self.installationUID == oldSelf.installationUID",message="installationUID is immutable",fieldPath=.installationUID
type InventoryData struct {
	// InstallationUID is the UID of the ModuleInstallation. Another object of the same name has another inventory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	InstallationUID string `json:"installationUID"`

	// Phase is what the installation is at.
	// +kubebuilder:validation:Enum=Installing;Installed;Upgrading;Deleting;Orphaning
	// +required
	Phase Phase `json:"phase"`

	// Salt goes into the hashes of what was rendered. Without it, whoever sees a plan's digest could try what a Secret
	// holds.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Salt string `json:"salt,omitempty"`

	// Choice is the catalogue that the module was found in. It is kept until spec.module.catalog changes.
	// +optional
	Choice *CatalogChoice `json:"choice,omitempty"`

	// Current is the release that was applied last, in full.
	// +optional
	Current *Release `json:"current,omitempty"`

	// Previous is the release that was applied before it.
	// +optional
	Previous *Release `json:"previous,omitempty"`

	// RenderDigest is the digest of all objects of the current release, as they were applied last.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	RenderDigest string `json:"renderDigest,omitempty"`

	// Attempt is what is being applied now. It is written before the first request and taken away after the last one:
	// whoever finds it goes on with it, or undoes it with another attempt.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// Deletion is what deleting the installation has to know of the current release, whose template may be gone then.
	// +optional
	Deletion *RecordedDeletion `json:"deletion,omitempty"`

	// DeprivedSince is since when a deletion lacks rights. Those that are missing for too long are taken for gone.
	// +optional
	DeprivedSince *metav1.Time `json:"deprivedSince,omitempty"`

	// Health says how the health of the attempt's kinds is told, or of the current release's: its template may be gone.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Health []HealthExpression `json:"health,omitempty"`

	// DefaultConfigCreated is the object that was created from the release's default configuration. It is not created
	// again, and does not count as users' data.
	// +optional
	DefaultConfigCreated *CreatedObject `json:"defaultConfigCreated,omitempty"`

	// JudgedBy tells the health expressions by which members were found healthy: 64 bits of a hash.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	JudgedBy string `json:"judgedBy,omitempty"`

	// LetGo is how many objects were let go of so far, rather than deleted when they were no longer needed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	LetGo int32 `json:"letGo,omitempty"`

	// History are the installations and upgrades that have ended, the newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

	// Members are the objects that were applied, or may have been, or may still exist. An object is in the list before
	// the first request that could create it, and until a delete of it is confirmed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=7500
	// +optional
	Members []Member `json:"members,omitempty"`
}

// CatalogChoice is the catalogue that a module was found in.
type CatalogChoice struct {
	// Requested is spec.module.catalog at the time. Another one there makes the choice anew.
	// +kubebuilder:validation:Enum=Auto;Local;System
	// +required
	Requested Catalog `json:"requested"`

	// Module, or template, that was looked for. Another one there makes the choice anew.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Module string `json:"module"`

	// Catalog that was chosen.
	// +kubebuilder:validation:Enum=Local;System
	// +required
	Catalog Catalog `json:"catalog"`

	// Namespace of that catalogue.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
}

// Attempt is a release, or a config, that is being applied.
type Attempt struct {
	// Release that is being applied.
	// +required
	Release Release `json:"release"`

	// RenderDigest is the digest of all its objects.
	// +kubebuilder:validation:MaxLength=71
	// +required
	RenderDigest string `json:"renderDigest"`

	// Stage is how far it has come.
	// +kubebuilder:validation:Enum=Applying;Waiting;Pruning
	// +required
	Stage AttemptStage `json:"stage"`

	// StartedAt is when it began.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// AppliedAt is when the last of its objects was applied; the time to become healthy runs from then.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
}

// RecordedDeletion is what deleting an installation has to know of its release.
type RecordedDeletion struct {
	// Mode is the template's.
	// +kubebuilder:validation:Enum=Block;Orphan
	// +required
	Mode DeletionMode `json:"mode"`

	// ManagedResources are the template's, and those of releases before it while something of them is left.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	ManagedResources []ManagedResource `json:"managedResources,omitempty"`
}

// CreatedObject names an object that was created.
type CreatedObject struct {
	GroupVersionKind `json:",inline"`

	// Namespace of the object; empty for kinds without namespaces.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// UID of the object; empty until its creation is confirmed.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"uid,omitempty"`

	// Found says that somebody else had made an object of that name before: it was left as it is, and is not removed.
	// +optional
	Found bool `json:"found,omitempty"`
}

// Member is an object that belongs to an installation. Its fields have short names, because there are many.
type Member struct {
	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"g,omitempty"`

	// Version of the kind.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Version string `json:"v"`

	// Kind of the object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"k"`

	// Namespace of the object; empty for kinds without namespaces.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"ns,omitempty"`

	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"nm"`

	// UID of the object; empty until it was applied.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"u,omitempty"`

	// RenderHash is a hash of the object as it was rendered: 128 bits in 22 characters of base64.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RenderHash string `json:"h,omitempty"`

	// Fingerprint is a hash of what the API server said it keeps of ours: the UID, and our entry in managedFields. 128
	// bits in 22 characters of base64.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Fingerprint string `json:"f,omitempty"`

	// HealthyAt is the resourceVersion of the object that was read and found healthy, as data.judgedBy has it. A restart
	// need not read that again.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HealthyAt string `json:"w,omitempty"`

	// State of the member; empty once it is applied.
	// +kubebuilder:validation:Enum="";Pending;Deleting
	// +optional
	State MemberState `json:"s,omitempty"`

	// Adopted says that the object was there before it was applied for the first time: somebody else made it.
	// +optional
	Adopted bool `json:"a,omitempty"`

	// Ended says that the object is a Job that ended well, and that its time to live has removed, or will: it is not made
	// again for the same release.
	// +optional
	Ended bool `json:"e,omitempty"`

	// Claimed says that another installation has the object, whose UID is on record, and that this one was refused it for
	// that reason alone: the other hands it over instead of removing it.
	// +optional
	Claimed bool `json:"c,omitempty"`
}

// Inventory is what the controller has to remember of the ModuleInstallation of its name. The controller alone writes
// it: an edit by anyone else can make it delete or forget objects.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=inv,categories={sluice,sluice-modules}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.data.phase`
// +kubebuilder:printcolumn:name="Module",type=string,JSONPath=`.data.current.module`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.data.current.version`
// +kubebuilder:printcolumn:name="Attempt",type=string,JSONPath=`.data.attempt.stage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Inventory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data is neither wish nor report, but the record itself.
	// +required
	Data InventoryData `json:"data"`

	// Undecodable says what in the data could not be decoded; the data is empty then, and must not be acted on or
	// written back. See UnmarshalJSON.
	Undecodable string `json:"-"`
}

// InventoryList is a list of Inventories.
//
// +kubebuilder:object:root=true
type InventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Inventory `json:"items"`
}
