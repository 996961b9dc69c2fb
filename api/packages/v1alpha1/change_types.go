package v1alpha1

const (
	// MaxChangedFiles is how many files a change names.
	MaxChangedFiles = 50

	// MaxChangedObjects is how many objects a change names.
	MaxChangedObjects = 50

	// MaxConflicts is how many conflicts a change lists.
	MaxConflicts = 32

	// MaxBindings is how many names of binding points a status lists.
	MaxBindings = 64

	// MaxLiteral is how long a literal may be, in bytes.
	MaxLiteral = 16 << 10

	// MaxInjected is how many points of injection a status lists.
	MaxInjected = 64

	// MaxRenderResults is how many results of functions a change lists.
	MaxRenderResults = 32

	// MaxRenderNotes is how many remarks each of them has.
	MaxRenderNotes = 8

	// MaxConflictValue is how much of a value a conflict shows, in characters.
	MaxConflictValue = 256
)

// ChangeStatus is a change of a package: one that is open, or one that would be made.
type ChangeStatus struct {
	// PackageRevision is the name of the change's object; empty where nothing was written.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PackageRevision string `json:"packageRevision,omitempty"`

	// Workspace of the change.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Workspace string `json:"workspace,omitempty"`

	// Lifecycle of the change, as it was observed.
	// +kubebuilder:validation:Enum=Draft;Proposed;Published;DeletionProposed
	// +optional
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`

	// Commit of the change.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Commit string `json:"commit,omitempty"`

	// Tree is Git's name for the package's folder with the change.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Tree string `json:"tree,omitempty"`

	// Message is the reason why Sluice cannot list the changed files or objects. It is empty if both are listed.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Files are those that differ from what is published.
	// +optional
	Files *FileChanges `json:"files,omitempty"`

	// Objects are those that differ from what is published.
	// +optional
	Objects *ObjectChanges `json:"objects,omitempty"`

	// Conflicts are places that upstream and people's edits changed in different ways. What became of them is what
	// spec.conflictPolicy says. Of more than 32, the first are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conflicts []Conflict `json:"conflicts,omitempty"`

	// ConflictCount is the number of conflicts, those that are not listed among them.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	ConflictCount int32 `json:"conflictCount,omitempty"`

	// ConflictDigest is the digest of the list of all conflicts, as 'sha256:…'. It is empty without conflicts. To approve the
	// change, set spec.approvedConflicts of the PackageRevision to this digest.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	ConflictDigest string `json:"conflictDigest,omitempty"`

	// RenderResults are what the functions of the package's pipelines did. Of more than 32, the first are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	RenderResults []RenderResult `json:"renderResults,omitempty"`
}

// Difference is what became of a file or an object.
type Difference string

const (
	// DifferenceAdded is what was not there before.
	DifferenceAdded Difference = "Added"
	// DifferenceChanged is what was there, and is another.
	DifferenceChanged Difference = "Changed"
	// DifferenceRemoved is what is there no more.
	DifferenceRemoved Difference = "Removed"
)

// FileChanges are files that differ.
type FileChanges struct {
	// Added is the number of files that are new.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Added int32 `json:"added"`

	// Changed is the number of files that are others.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Changed int32 `json:"changed"`

	// Removed is the number of files that are gone.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Removed int32 `json:"removed"`

	// Names are the files. Of more than 50, the first are named.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Names []FileChange `json:"names,omitempty"`
}

// FileChange is a file that differs.
type FileChange struct {
	// Change is what became of it.
	// +kubebuilder:validation:Enum=Added;Changed;Removed
	// +required
	Change Difference `json:"change"`

	// Path of the file in the package.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Path string `json:"path"`
}

// ObjectChanges are objects that differ.
type ObjectChanges struct {
	// Added is the number of objects that are new.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Added int32 `json:"added"`

	// Changed is the number of objects that are others.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Changed int32 `json:"changed"`

	// Removed is the number of objects that are gone.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Removed int32 `json:"removed"`

	// Names are the objects. Of more than 50, the first are named.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Names []ObjectChange `json:"names,omitempty"`
}

// ObjectChange is an object that differs.
type ObjectChange struct {
	// Change is what became of it.
	// +kubebuilder:validation:Enum=Added;Changed;Removed
	// +required
	Change Difference `json:"change"`

	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Namespace of the object; empty where its manifest has none.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// Conflict is a place that upstream and people's edits changed in different ways. Values are cut to 256 characters, and
// those of Secrets are not shown.
type Conflict struct {
	// File of the package.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	File string `json:"file"`

	// Resource is the object in the file, as 'kind.group namespace/name'; empty where the file has none.
	// +kubebuilder:validation:MaxLength=640
	// +optional
	Resource string `json:"resource,omitempty"`

	// Path of the field in the object; empty where the object or file as a whole is meant.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// Base is what both started from; empty where there was nothing.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Base string `json:"base,omitempty"`

	// Upstream is what upstream has; empty where it has nothing.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Upstream string `json:"upstream,omitempty"`

	// Local is what people made of it; empty where they removed it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Local string `json:"local,omitempty"`
}

// RenderResult is what a function of a pipeline did.
type RenderResult struct {
	// Package is the path of the subpackage whose pipeline has the function; empty for the package itself.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Package string `json:"package,omitempty"`

	// Function is what the function is called: the name of its image.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Function string `json:"function"`

	// Entry is the name that the entry in the pipeline has; empty where it has none.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Entry string `json:"entry,omitempty"`

	// Validator says that the function only looked at the objects.
	// +optional
	Validator bool `json:"validator,omitempty"`

	// Changed is the number of values that the function set.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Changed int32 `json:"changed,omitempty"`

	// Notes are remarks of the function, for people.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	Notes []string `json:"notes,omitempty"`
}
