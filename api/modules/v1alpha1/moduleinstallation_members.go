package v1alpha1

const (
	// MaxContents is how many kinds status.inventory.contents lists.
	MaxContents = 128
	// MaxContentNamespaces is how many namespaces it lists of each kind.
	MaxContentNamespaces = 16
	// MaxProblems is how many members status.problems lists.
	MaxProblems = 10
)

// InventoryContent is a kind of which an installation has objects.
type InventoryContent struct {
	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the kind.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Version string `json:"version"`

	// Kind of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Namespaces that the objects are in, by name; none for kinds without namespaces. Of more than 16, the first are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// Count is the number of objects, in all namespaces.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	Count int32 `json:"count"`
}

// MemberProblem is an object of an installation that fails, is waited for, or is contested.
type MemberProblem struct {
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

	// Reason says in one word what is wrong: 'Progressing' for an object that is waited for, 'DriftContested' for one that
	// somebody else changes back, else a reason of the conditions Ready, Applied and Healthy.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason"`

	// Message says more.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}
