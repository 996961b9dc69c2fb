package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Catalog says where a module's releases are looked for.
type Catalog string

const (
	// CatalogAuto takes the installation's own namespace if it has the module, else the system's. The choice is kept.
	CatalogAuto Catalog = "Auto"
	// CatalogLocal takes the installation's own namespace alone.
	CatalogLocal Catalog = "Local"
	// CatalogSystem takes the system's namespace alone.
	CatalogSystem Catalog = "System"
)

// DeletionMode says what becomes of a module when its installation is deleted.
type DeletionMode string

const (
	// DeletionBlock removes all that was installed, and waits until no instance of the module's managed resources is
	// left before it begins.
	DeletionBlock DeletionMode = "Block"
	// DeletionOrphan leaves everything, and takes the installation's labels off.
	DeletionOrphan DeletionMode = "Orphan"
)

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SourceReference names an object with an artifact in the same namespace.
type SourceReference struct {
	// APIVersion of the object: its group and version, such as 'source.toolkit.fluxcd.io/v1'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the object, such as 'OCIRepository'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// GroupVersionKind names a kind of object.
type GroupVersionKind struct {
	// Group of the kind; empty for Kubernetes' core kinds.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +kubebuilder:default=""
	// +optional
	Group string `json:"group"`

	// Version of the kind, such as 'v1'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Version string `json:"version"`

	// Kind as it stands in manifests.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	// +required
	Kind string `json:"kind"`
}

// ManagedScope says where objects of a managed resource are looked for.
type ManagedScope string

const (
	// ManagedInCluster counts the objects of all namespaces.
	ManagedInCluster ManagedScope = "Cluster"
	// ManagedInNamespace counts those in the installation's own namespace alone.
	ManagedInNamespace ManagedScope = "Namespace"
)

// ManagedResource is a kind whose objects are the data of a module's users.
type ManagedResource struct {
	GroupVersionKind `json:",inline"`

	// Scope says which of the objects keep an installation from being removed: 'Cluster', which is all of them, or
	// 'Namespace', which is those in the installation's namespace alone. Empty is 'Cluster'. Of a kind whose CRD is part
	// of the release, all count: they would go with the CRD.
	// +kubebuilder:validation:Enum=Cluster;Namespace
	// +optional
	Scope ManagedScope `json:"scope,omitempty"`
}

// Release names a release exactly: what was chosen, and the bytes it stands for.
type Release struct {
	// Module that it is a release of.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Module string `json:"module,omitempty"`

	// Version of the release; empty where it is unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// Channel that the release was chosen by, if one was.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Channel string `json:"channel,omitempty"`

	// Namespace of the template and of its source.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Template is the name of the ModuleTemplate.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// Source is the object whose artifact holds the release.
	// +optional
	Source *SourceReference `json:"source,omitempty"`

	// Revision of the artifact, such as '1.4.2@sha256:…'.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Revision string `json:"revision,omitempty"`

	// Digest of the artifact, which it is fetched by.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Digest string `json:"digest,omitempty"`

	// Content names what is installed: the pin of the artifact, and what of it is used. Equal contents have equal names.
	// +kubebuilder:validation:MaxLength=1536
	// +optional
	Content string `json:"content,omitempty"`

	// Path is the folder in the artifact that is installed.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// AppliedAt is when all of the release's objects had been applied.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// HealthyAt is when the release was first seen healthy after that.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +optional
	HealthyAt *metav1.Time `json:"healthyAt,omitempty"`
}

// Outcome says how an installation or upgrade ended.
type Outcome string

const (
	// OutcomeSucceeded: everything was applied, became healthy, and what is no longer needed was removed.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed: it ended with something left undone, or was overtaken by another choice.
	OutcomeFailed Outcome = "Failed"
)

// HistoryEntry is one installation or upgrade that has ended.
type HistoryEntry struct {
	// Version of the release; empty where it is unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// Template is the name of the ModuleTemplate.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Template string `json:"template,omitempty"`

	// Digest of the artifact.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Digest string `json:"digest,omitempty"`

	// Outcome says how it ended.
	// +kubebuilder:validation:Enum=Succeeded;Failed
	// +required
	Outcome Outcome `json:"outcome"`

	// At is when it ended.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +required
	At metav1.Time `json:"at"`

	// Message says why, where it failed.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
