package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxBlockers is how many kinds status.deletion lists that keep an installation from being removed, of each sort.
const MaxBlockers = 64

// MaxHistory is how many installations and upgrades are remembered, the newest first.
const MaxHistory = 10

// ModuleInstallationStatus is what was last seen of a ModuleInstallation. It is a report: what is decided by is in the
// Inventory.
type ModuleInstallationStatus struct {
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

	// Resolution says how a release was chosen, and why that one.
	// +optional
	Resolution *Resolution `json:"resolution,omitempty"`

	// Desired is the release that the spec selects, whether or not it may be installed now.
	// +optional
	Desired *Release `json:"desired,omitempty"`

	// Current is the release that was applied last, in full. It is the one that is kept as published.
	// +optional
	Current *Release `json:"current,omitempty"`

	// Attempted is the release that is being applied, or that was begun and not brought to an end while the spec leads
	// elsewhere by now. Objects of it may be in the cluster.
	// +optional
	Attempted *Release `json:"attempted,omitempty"`

	// Previous is the release that was applied before the current one, and that may be gone back to.
	// +optional
	Previous *Release `json:"previous,omitempty"`

	// Pending says what the release that is selected waits for.
	// +optional
	Pending *Pending `json:"pending,omitempty"`

	// AvailableUpgrades are releases of the module that are newer than the current one, the highest first. Only the
	// first 20 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	AvailableUpgrades []AvailableUpgrade `json:"availableUpgrades,omitempty"`

	// Deletion says what the deletion of the installation waits for.
	// +optional
	Deletion *DeletionStatus `json:"deletion,omitempty"`

	// Inventory is the object that lists what is installed.
	// +optional
	Inventory *InventoryReference `json:"inventory,omitempty"`

	// Problems are members that fail, are waited for, or are contested, in this order, and by group, kind, namespace and name.
	// Of more than 10, the first are listed. The list is renewed when something else of the status changes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Problems []MemberProblem `json:"problems,omitempty"`

	// History are the installations and upgrades that have ended, the newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// Resolution says how a release was chosen.
type Resolution struct {
	// Module that was looked for: the one that is named, or the one of the template that is.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Module string `json:"module,omitempty"`

	// Catalog that it was found in. It is kept until spec.module.catalog changes.
	// +kubebuilder:validation:Enum=Local;System
	// +optional
	Catalog Catalog `json:"catalog,omitempty"`

	// Namespace of that catalogue.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// SelectedBy is what decided: 'channel/regular', 'version/1.4.2', 'range/>=1.4.0', 'latest', 'template/redis-1.4.2'.
	// +kubebuilder:validation:MaxLength=640
	// +optional
	SelectedBy string `json:"selectedBy,omitempty"`

	// Trace are the steps of the choice in their order, each with how many releases were left after it.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Trace []TraceStep `json:"trace,omitempty"`
}

// TraceStep is one step in the choice of a release.
type TraceStep struct {
	// Rule that was applied, such as 'prerelease'.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Rule string `json:"rule"`

	// Kept is the number of releases that were left.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Kept int32 `json:"kept"`

	// Detail says more, such as which release left the running and why.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Detail string `json:"detail,omitempty"`
}

// Pending is a release that is selected, and what it waits for.
type Pending struct {
	// Version of the release; empty where it is unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// Template is the name of the ModuleTemplate; empty where none was found.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// Reason says in one word what it waits for, such as 'AwaitingApproval'.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason"`

	// Message says what it waits for, and what helps.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Plan is what installing it would do.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
}

// Plan is what installing a release, or an edit of the spec, would do.
type Plan struct {
	// Digest names the plan: the release, the rendered objects, and all that would be created, changed and removed. It is
	// what upgrade.approve approves.
	// +kubebuilder:validation:MaxLength=71
	// +required
	Digest string `json:"digest"`

	// Create is the number of objects that would be created.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Create int32 `json:"create"`

	// Update is the number of objects that would be changed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Update int32 `json:"update"`

	// Delete is the number of objects that would be removed. What would be let go of is none of them.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Delete int32 `json:"delete"`

	// Objects are those that would change: first what would be removed, then what would be changed, then what would be
	// created. Of more than 50, the first are named.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Objects []PlannedObject `json:"objects,omitempty"`
}

// MaxPlannedObjects is how many objects a plan names.
const MaxPlannedObjects = 50

// PlannedChange is what would become of an object.
type PlannedChange string

const (
	// PlannedDelete is an object that would be removed.
	PlannedDelete PlannedChange = "Delete"
	// PlannedUpdate is one that would be changed.
	PlannedUpdate PlannedChange = "Update"
	// PlannedCreate is one that would be created.
	PlannedCreate PlannedChange = "Create"
)

// PlannedObject is an object that a plan is about.
type PlannedObject struct {
	// Change is what would become of it.
	// +kubebuilder:validation:Enum=Delete;Update;Create
	// +required
	Change PlannedChange `json:"change"`

	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Namespace of the object; empty for kinds without namespaces.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// AvailableUpgrade is a release that is newer than the current one.
type AvailableUpgrade struct {
	// Version of the release.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Version string `json:"version"`

	// Template is the name of the ModuleTemplate.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// Allowed says whether the installation could move there as its spec stands, if the release were selected.
	// +required
	Allowed bool `json:"allowed"`

	// Reason says in one word why not.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
}

// DeletionStatus says what the deletion of an installation waits for.
type DeletionStatus struct {
	// Mode that counts: the installation's own, or the template's.
	// +kubebuilder:validation:Enum=Block;Orphan
	// +optional
	Mode DeletionMode `json:"mode,omitempty"`

	// BlockedBy are managed resources of which there are objects.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	BlockedBy []DeletionBlocker `json:"blockedBy,omitempty"`

	// Unknown are managed resources that could not be listed. They block as well.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Unknown []UnknownResource `json:"unknown,omitempty"`

	// Unlisted is the number of kinds that blockedBy and unknown have no room for.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Unlisted int32 `json:"unlisted,omitempty"`
}

// DeletionBlocker is a kind of which there are objects that are users' data.
type DeletionBlocker struct {
	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Count is the number of objects.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Count int32 `json:"count"`

	// Examples are some of them, as 'namespace/name', or the name alone for kinds without namespaces.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=317
	// +optional
	Examples []string `json:"examples,omitempty"`
}

// UnknownResource is a kind whose objects could not be listed.
type UnknownResource struct {
	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Message says why.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// InventoryReference names the Inventory of an installation.
type InventoryReference struct {
	// Name of the Inventory, in the same namespace.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Members is the number of objects in it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Members int32 `json:"members"`

	// LetGo is the number of objects that were let go of so far, rather than deleted when they were no longer needed:
	// they hold data, or somebody keeps them. The events 'Orphaned' name them.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	LetGo int32 `json:"letGo,omitempty"`

	// Contents are the kinds of these objects, by group, kind and version. Of more than 128, the first are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Contents []InventoryContent `json:"contents,omitempty"`
}
