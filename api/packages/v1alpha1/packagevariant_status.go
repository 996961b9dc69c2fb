package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PackageVariantStatus is what was last seen of a PackageVariant. It is a report: what is decided by is in Git.
type PackageVariantStatus struct {
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

	// Upstream is the revision that the spec leads to.
	// +optional
	Upstream *UpstreamStatus `json:"upstream,omitempty"`

	// Downstream is where the package is kept.
	// +optional
	Downstream *DownstreamStatus `json:"downstream,omitempty"`

	// Config is the digest of what the package is made from, upstream included. Packages of one digest are the same.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Config string `json:"config,omitempty"`

	// Injected says what the package's injection points are filled with.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Injected []InjectedStatus `json:"injected,omitempty"`

	// Bindings says what the package's binding points are filled with.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Bindings []BindingStatus `json:"bindings,omitempty"`

	// Change is the one that is open.
	// +optional
	Change *ChangeStatus `json:"change,omitempty"`

	// Published is the newest revision that was published.
	// +optional
	Published *PublishedStatus `json:"published,omitempty"`

	// Adopted is what was taken over as it was, because it lacked nothing: no commit was made for it. It goes with the first
	// commit.
	// +optional
	Adopted *AdoptedStatus `json:"adopted,omitempty"`

	// Review is the pull or merge request of the open change, or of the one that was published last.
	// +optional
	Review *ReviewStatus `json:"review,omitempty"`

	// Preview is the change that would be made, while dryRun is set or a proposal is frozen. Where a conflict keeps a change
	// from being begun, it lists the conflicts.
	// +optional
	Preview *ChangeStatus `json:"preview,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// AdoptedStatus is a state of a package that somebody else made, and that is what the variant would make.
type AdoptedStatus struct {
	// Tree is Git's name for the package's folder.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Tree string `json:"tree"`

	// Config is the digest of what the package would be made from.
	// +kubebuilder:validation:MaxLength=71
	// +required
	Config string `json:"config"`
}

// UpstreamStatus is a revision of a package, as it was found.
type UpstreamStatus struct {
	// Repo is the name of the Repository.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Repo string `json:"repo"`

	// Package is the package's path below the Repository's directory.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Package string `json:"package"`

	// Revision is the name of the revision, such as 'v3' or 'v1.4.2'; empty for what a branch is at.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Revision string `json:"revision,omitempty"`

	// Ref is the full name of the Git reference.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Ref string `json:"ref,omitempty"`

	// Commit that the reference is at.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Commit string `json:"commit"`

	// Tree is Git's name for the package's folder there.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Tree string `json:"tree"`
}

// DownstreamStatus is where a package is kept.
type DownstreamStatus struct {
	// Repo is the name of the Repository.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Repo string `json:"repo"`

	// Package is the package's path below the Repository's directory.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Package string `json:"package"`
}

// PublishedStatus is a revision that was published.
type PublishedStatus struct {
	// Revision is the name of the revision, such as 'v3'.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Revision string `json:"revision"`

	// PackageRevision is the name of its object; empty where there is none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PackageRevision string `json:"packageRevision,omitempty"`

	// Commit of the revision.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Commit string `json:"commit"`

	// Tree is Git's name for the package's folder there.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Tree string `json:"tree,omitempty"`
}

// InjectedStatus says what an injection point is filled with.
type InjectedStatus struct {
	// Point is the name of the object in the package.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Point string `json:"point"`

	// File of the package that the point is in.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	File string `json:"file,omitempty"`

	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the kind.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Version string `json:"version,omitempty"`

	// Kind of the point, and of the object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Required says whether the package cannot do without.
	// +optional
	Required bool `json:"required,omitempty"`

	// Namespace of the object in the cluster; empty for kinds without namespaces, and where there is no object.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object in the cluster; empty where there is none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// Reason says in one word why there is none, such as 'InjectionMissing'.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says why there is none.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
