package v1alpha1

// ReviewProvider is a kind of forge.
type ReviewProvider string

const (
	// ReviewGitHub is GitHub, or a GitHub Enterprise Server.
	ReviewGitHub ReviewProvider = "github"
	// ReviewGitLab is GitLab, wherever it runs.
	ReviewGitLab ReviewProvider = "gitlab"
	// ReviewGitea is Gitea, and what took over its API, such as Forgejo.
	ReviewGitea ReviewProvider = "gitea"
)

// Review says where changes are reviewed.
type Review struct {
	// Provider is the kind of the forge that the downstream repository is on.
	// +kubebuilder:validation:Enum=github;gitlab;gitea
	// +required
	Provider ReviewProvider `json:"provider"`

	// SecretRef names the Secret, in the same namespace, with what the forge's API asks for: 'bearerToken', or 'username'
	// and a token as 'password', or the keys of a GitHub App; 'ca.crt' where its certificate needs it; and 'endpoint', the
	// API's https URL, where that is not at its usual place on the host of the Git repository.
	// +required
	SecretRef LocalReference `json:"secretRef"`
}

// ReviewState is how far a review is.
type ReviewState string

const (
	// ReviewOpen waits for people.
	ReviewOpen ReviewState = "Open"
	// ReviewMerged is a review whose request was merged.
	ReviewMerged ReviewState = "Merged"
	// ReviewClosed is a review whose request was closed without a merge.
	ReviewClosed ReviewState = "Closed"
)

// ReviewStatus is the pull or merge request of the open change, or of the one that was published last.
type ReviewStatus struct {
	// Number of the request on the forge.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Number int64 `json:"number"`

	// URL where people see it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	URL string `json:"url,omitempty"`

	// State of the request, as it was seen last.
	// +kubebuilder:validation:Enum=Open;Merged;Closed
	// +required
	State ReviewState `json:"state"`

	// By is who merged or closed it, where the forge tells.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	By string `json:"by,omitempty"`
}
