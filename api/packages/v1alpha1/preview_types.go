package v1alpha1

const (
	// MaxPreviewed is how many targets the preview in a status lists.
	MaxPreviewed = 50

	// MaxPreviewedConflicts is how many conflicts it lists of each.
	MaxPreviewedConflicts = 3
)

// PreviewApproval says which new revisions of a set wait until somebody approves their preview.
type PreviewApproval string

const (
	// ApproveEdits is the PreviewApproval that holds edits of the set's targets and templates.
	ApproveEdits PreviewApproval = "Edits"
	// ApproveAll is the PreviewApproval that holds what is new upstream as well.
	ApproveAll PreviewApproval = "All"
)

// PreviewChange is what would become of the package of a target.
type PreviewChange string

const (
	// PreviewCreated is a package that is not there yet.
	PreviewCreated PreviewChange = "Created"
	// PreviewChanged is a package that would be another, or of which the variant would be.
	PreviewChanged PreviewChange = "Changed"
	// PreviewUnchanged is a package that is as it should be.
	PreviewUnchanged PreviewChange = "Unchanged"
	// PreviewDeleted is a variant that has no target any more.
	PreviewDeleted PreviewChange = "Deleted"
	// PreviewFailed is a package that cannot be made; the message says why.
	PreviewFailed PreviewChange = "Failed"
)

// SetPreview is what would become of the packages of a set.
type SetPreview struct {
	// Digest names the preview: with the same one, the same would become of the same packages. Who approves the preview names
	// it. Empty as long as some targets are left to be looked at.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Digest string `json:"digest,omitempty"`

	// Revision is the ControllerRevision that waits for the approval; empty where dryRun is set.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`

	// Pending is how many targets are left to be looked at.
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// Created is how many packages would be there that are not.
	// +optional
	Created int32 `json:"created"`

	// Changed is how many packages would be others.
	// +optional
	Changed int32 `json:"changed"`

	// Unchanged is how many packages would stay as they are.
	// +optional
	Unchanged int32 `json:"unchanged"`

	// Deleted is how many variants would go.
	// +optional
	Deleted int32 `json:"deleted"`

	// Failed is how many packages cannot be made.
	// +optional
	Failed int32 `json:"failed"`

	// Conflicted is how many packages have conflicts.
	// +optional
	Conflicted int32 `json:"conflicted"`

	// Cut is of how many targets the artifact leaves out what would change in their packages, as it would be too large.
	// +optional
	Cut int32 `json:"cut,omitempty"`

	// Targets are the first of those of which something is to be said: those with conflicts, those that fail, those that go, then
	// those that change. Of their files and objects the names are left out, and of their conflicts all but the first three,
	// and the values. The artifact has all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Targets []TargetPreview `json:"targets,omitempty"`
}

// TargetPreview is what would become of the package of a target.
type TargetPreview struct {
	// Target that it is.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Target string `json:"target"`

	// Repo is the name of the Repository; empty where nobody can tell.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Repo string `json:"repo,omitempty"`

	// Package is the package's path below the Repository's directory.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Package string `json:"package,omitempty"`

	// Change is what would become of it.
	// +kubebuilder:validation:Enum=Created;Changed;Unchanged;Deleted;Failed
	// +required
	Change PreviewChange `json:"change"`

	// Reason says in one word why it cannot be made.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says why it cannot be made, or what else is to be known.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// Files are those that differ from what is published.
	// +optional
	Files *FileChanges `json:"files,omitempty"`

	// Objects are those that differ from what is published.
	// +optional
	Objects *ObjectChanges `json:"objects,omitempty"`

	// ConflictCount is the number of conflicts.
	// +optional
	ConflictCount int32 `json:"conflictCount,omitempty"`

	// Conflicts are places that upstream and people's edits changed in different ways.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Conflicts []Conflict `json:"conflicts,omitempty"`
}
