package v1alpha1

// AdoptionPolicy says whether a package is taken over that a variant did not make.
type AdoptionPolicy string

const (
	// AdoptNone takes over nothing. It is meant when nothing is set.
	AdoptNone AdoptionPolicy = "adoptNone"
	// AdoptExisting takes over what no other variant has.
	AdoptExisting AdoptionPolicy = "adoptExisting"
)

// DeletionPolicy decides about the package of a variant that is deleted or moved.
type DeletionPolicy string

const (
	// DeletionDelete removes a draft without people's commits, and proposes the deletion of the published package. It is the default.
	DeletionDelete DeletionPolicy = "delete"
	// DeletionOrphan leaves everything in place.
	DeletionOrphan DeletionPolicy = "orphan"
)

// ApprovalPolicy says which changes of a variant the controller proposes and approves itself.
type ApprovalPolicy string

const (
	// ApprovalManual leaves all to people. It is meant when nothing is set.
	ApprovalManual ApprovalPolicy = "Manual"
	// ApprovalInitial approves the first revision, and leaves the others to people.
	ApprovalInitial ApprovalPolicy = "Initial"
	// ApprovalAlways approves every change.
	ApprovalAlways ApprovalPolicy = "Always"
)

// Approval says who approves the changes of a variant.
//
// +kubebuilder:validation:XValidation:rule="!has(self.review) || !has(self.policy) || self.policy != 'Always'",message="a review needs somebody who approves; set policy to Manual or Initial"
type Approval struct {
	// Policy is 'Manual', where people propose and approve each change; 'Initial', where the controller approves the first
	// revision; or 'Always', where it approves every change. The controller approves only a package that it computed itself,
	// without conflicts and without older upstream content. Sluice publishes nothing while a readiness gate of the package is
	// closed; a merge on a forge, see review, is not prevented. You need the approve permission to set a policy other than
	// 'Manual', and to edit the spec under such a policy.
	// +kubebuilder:validation:Enum=Manual;Initial;Always
	// +kubebuilder:default=Manual
	// +optional
	Policy ApprovalPolicy `json:"policy,omitempty"`

	// Review asks for the approval where people review: each open change gets a pull or merge request, whose merge
	// approves it and whose closing rejects it. Without it, its branch and its PackageRevision are there for that.
	// Whoever sets or changes it has to have the right to approve.
	// +optional
	Review *Review `json:"review,omitempty"`
}

// ConflictPolicy decides which value a draft gets where upstream and people changed the same value.
type ConflictPolicy string

const (
	// ConflictUpstream takes upstream's value.
	ConflictUpstream ConflictPolicy = "Upstream"
	// ConflictLocal takes people's value. It is the default.
	ConflictLocal ConflictPolicy = "Local"
	// ConflictFail changes nothing until the conflict is gone.
	ConflictFail ConflictPolicy = "Fail"
)

// Lifecycle is how far a revision of a package is.
type Lifecycle string

const (
	// LifecycleDraft is a change that is worked on.
	LifecycleDraft Lifecycle = "Draft"
	// LifecycleProposed is a change that is to be approved. It is frozen.
	LifecycleProposed Lifecycle = "Proposed"
	// LifecyclePublished is a revision that is on the branch, or was.
	LifecyclePublished Lifecycle = "Published"
	// LifecycleDeletionProposed is a published revision whose deletion is to be approved.
	LifecycleDeletionProposed Lifecycle = "DeletionProposed"
	// LifecycleDeleted approves the removal of the commit in approvedCommit. It is a request only, and never in status.
	LifecycleDeleted Lifecycle = "Deleted"
)

// IsPublished says whether a revision of the lifecycle was published: it is never changed again.
func (l Lifecycle) IsPublished() bool {
	return l == LifecyclePublished || l == LifecycleDeletionProposed
}
