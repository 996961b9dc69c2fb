package v1alpha1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PackageRevisionKind is the kind of a PackageRevision as it stands in manifests.
	PackageRevisionKind = "PackageRevision"

	// RevisionInterval is the time between two rounds of a PackageRevision. What happens in Git is heard of by its
	// Repository.
	RevisionInterval = time.Hour
)

// PackageRevisionSpec names a change or revision of a package, and says what is to become of it.
//
// +kubebuilder:validation:XValidation:rule="self.repository == oldSelf.repository",message="repository is immutable",fieldPath=.repository
// +kubebuilder:validation:XValidation:rule="self.__package__ == oldSelf.__package__",message="package is immutable",fieldPath=.package
// +kubebuilder:validation:XValidation:rule="self.workspace == oldSelf.workspace",message="workspace is immutable",fieldPath=.workspace
type PackageRevisionSpec struct {
	// Repository is the name of the Repository, in the same namespace. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Repository string `json:"repository"`

	// Package is the package's path below the Repository's directory. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*(/[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*)*$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..') && !self.contains('@{') && !self.contains('./') && !self.contains('.lock/') && !self.endsWith('.') && !self.endsWith('.lock')",message="Git takes no such name for a branch that a change is on"
	// +required
	Package string `json:"package"`

	// Workspace is the name of the change among those of the package. A revision that was published without one that is
	// known has its revision's name here, such as 'v3'. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..') && !self.contains('@{') && !self.endsWith('.') && !self.endsWith('.lock')",message="Git takes no such name for a branch that a change is on"
	// +required
	Workspace string `json:"workspace"`

	// Lifecycle that you request. Anyone who can edit the object can propose a draft and withdraw a proposal. You need the
	// approve permission to publish, to propose or approve a deletion, and to discard a draft. Deleted removes the commit in
	// approvedCommit: Sluice removes a revision whose deletion is proposed from the branch, and discards a draft or proposal.
	// +kubebuilder:validation:Enum=Draft;Proposed;Published;DeletionProposed;Deleted
	// +kubebuilder:default=Draft
	// +optional
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`

	// ApprovedCommit is the commit that the controller may publish or remove. Set it to status.commit after you have reviewed
	// that commit. The controller refuses any other commit.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})$`
	// +optional
	ApprovedCommit string `json:"approvedCommit,omitempty"`

	// ApprovedConflicts is the digest of the conflicts that you accept. Set it to status.conflictDigest after you have reviewed
	// the conflicts. The controller does not publish a change with other conflicts. A change without conflicts needs no digest.
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +optional
	ApprovedConflicts string `json:"approvedConflicts,omitempty"`
}

// PackageRevisionStatus is what was last seen of a change or revision in Git.
type PackageRevisionStatus struct {
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

	// Lifecycle that was observed.
	// +kubebuilder:validation:Enum=Draft;Proposed;Published;DeletionProposed
	// +optional
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`

	// Revision is the number of the revision; 0 until it is published, and where it was published under a name of its own.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// Workspace of the change.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Workspace string `json:"workspace,omitempty"`

	// Ref is the full name of the Git reference.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Ref string `json:"ref,omitempty"`

	// Commit that the reference is at.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Commit string `json:"commit,omitempty"`

	// Tree is Git's name for the package's folder there.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Tree string `json:"tree,omitempty"`

	// UpstreamLock says what the package was cloned from, as its Kptfile has it.
	// +optional
	UpstreamLock *UpstreamLock `json:"upstreamLock,omitempty"`

	// PackageVariant that the package belongs to, as 'namespace/name'; empty where it belongs to none.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	PackageVariant string `json:"packageVariant,omitempty"`

	// ConflictCount is the number of conflicts between upstream and people's edits in the open change. The status.change of its
	// PackageVariant lists them.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	ConflictCount int32 `json:"conflictCount,omitempty"`

	// ConflictDigest is the digest of the list of these conflicts, as 'sha256:…'. It is empty without conflicts.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	ConflictDigest string `json:"conflictDigest,omitempty"`

	// ReadinessGates of the package: conditions that have to be True before it is published.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ReadinessGates []ReadinessGate `json:"readinessGates,omitempty"`

	// PackageConditions are those that stand in the package's Kptfile.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PackageConditions []PackageCondition `json:"packageConditions,omitempty"`

	// Artifact has the package's files, while the change is open.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// UpstreamLock says what a package was cloned from.
type UpstreamLock struct {
	// Repo is the URL of the Git repository, without credentials.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Repo string `json:"repo,omitempty"`

	// Directory of the package there.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Directory string `json:"directory,omitempty"`

	// Ref that was cloned.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Ref string `json:"ref,omitempty"`

	// Commit that was cloned.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Commit string `json:"commit,omitempty"`
}

// ReadinessGate is a condition of a package that has to be True before it is published.
type ReadinessGate struct {
	// ConditionType is the type of the condition.
	// +kubebuilder:validation:MaxLength=316
	// +required
	ConditionType string `json:"conditionType"`
}

// PackageCondition is a condition that stands in a package's Kptfile.
type PackageCondition struct {
	// Type of the condition.
	// +kubebuilder:validation:MaxLength=316
	// +required
	Type string `json:"type"`

	// Status of the condition.
	// +kubebuilder:validation:Enum="True";"False";Unknown
	// +required
	Status metav1.ConditionStatus `json:"status"`

	// Reason for the status, in one word.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message about the status.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// PackageRevision is a change of a package that is open, or one of its newest revisions that were published.
//
// +kubebuilder:validation:XValidation:rule="(has(self.spec.lifecycle) ? self.spec.lifecycle : 'Draft') != 'Published' || (has(oldSelf.spec.lifecycle) ? oldSelf.spec.lifecycle : 'Draft') == 'Published' || has(self.spec.approvedCommit) || (has(self.status) && has(self.status.lifecycle) && self.status.lifecycle in ['Published', 'DeletionProposed'])",message="to publish, approvedCommit has to name the commit",fieldPath=.spec.approvedCommit
// +kubebuilder:validation:XValidation:rule="(has(self.spec.lifecycle) ? self.spec.lifecycle : 'Draft') == (has(oldSelf.spec.lifecycle) ? oldSelf.spec.lifecycle : 'Draft') || ((has(self.status) && has(self.status.lifecycle) && self.status.lifecycle in ['Published', 'DeletionProposed']) ? (has(self.spec.lifecycle) ? self.spec.lifecycle : 'Draft') in ['Published', 'DeletionProposed', 'Deleted'] : (has(self.spec.lifecycle) ? self.spec.lifecycle : 'Draft') != 'DeletionProposed')",message="what is published stays published until its deletion is approved, and nothing else can be proposed for deletion",fieldPath=.spec.lifecycle
// +kubebuilder:validation:XValidation:rule="(has(self.spec.lifecycle) ? self.spec.lifecycle : 'Draft') != 'Deleted' || (has(oldSelf.spec.lifecycle) ? oldSelf.spec.lifecycle : 'Draft') == 'Deleted' || (has(self.spec.approvedCommit) && has(oldSelf.status) && has(oldSelf.status.lifecycle) && oldSelf.status.lifecycle != 'Published')",message="Deleted needs approvedCommit, and a status.lifecycle of Draft, Proposed or DeletionProposed",fieldPath=.spec.lifecycle
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pkgrev,categories={sluice,sluice-packages}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:selectablefield:JSONPath=`.spec.repository`
// +kubebuilder:selectablefield:JSONPath=`.spec.package`
// +kubebuilder:selectablefield:JSONPath=`.spec.workspace`
// +kubebuilder:selectablefield:JSONPath=`.status.lifecycle`
// +kubebuilder:selectablefield:JSONPath=`.status.packageVariant`
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repository`
// +kubebuilder:printcolumn:name="Package",type=string,JSONPath=`.spec.package`
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspace`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Lifecycle",type=string,JSONPath=`.status.lifecycle`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Requested",type=string,JSONPath=`.spec.lifecycle`,priority=1
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.commit`,priority=1
// +kubebuilder:printcolumn:name="Variant",type=string,JSONPath=`.status.packageVariant`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PackageRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PackageRevisionSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status PackageRevisionStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// PackageRevisionList is a list of PackageRevisions.
//
// +kubebuilder:object:root=true
type PackageRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageRevision `json:"items"`
}
