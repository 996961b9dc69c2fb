package v1beta1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ArtifactGeneratorKind is the kind of an ArtifactGenerator as it stands in manifests.
	ArtifactGeneratorKind = "ArtifactGenerator"

	// Finalizer is on every ArtifactGenerator that has been worked for; it is Flux's.
	Finalizer = "source.extensions.fluxcd.io/finalizer"

	// GeneratorLabel is on every ExternalArtifact that was generated, with the UID of its generator. What does not have it
	// is somebody else's.
	GeneratorLabel = "source.extensions.fluxcd.io/generator"

	// ReconcileAnnotation on an ArtifactGenerator stops all work for it while its value is ReconcileDisabled, in whatever
	// case. What was generated stays served.
	ReconcileAnnotation = "source.extensions.fluxcd.io/reconcile"
	// ReconcileDisabled is a value of ReconcileAnnotation.
	ReconcileDisabled = "disabled"
)

// How a copy operation puts a file where there is one.
const (
	// OverwriteStrategy replaces the file. It is meant when nothing is set.
	OverwriteStrategy = "Overwrite"
	// MergeStrategy merges YAML into it, as Helm merges values.
	MergeStrategy = "Merge"
	// ExtractStrategy unpacks archives that are named .tar.gz or .tgz.
	ExtractStrategy = "Extract"
)

// ArtifactGeneratorSpec says which artifacts are made of which parts of which sources.
type ArtifactGeneratorSpec struct {
	// Sources are the objects that have what is copied.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +required
	Sources []SourceReference `json:"sources"`

	// PathPattern makes every artifact once for each folder of a source that it matches. The form is '@alias/pattern',
	// where '{name}' in the pattern stands for one part of a path. What it stands for takes the place of '{name}' in
	// the names and copy operations of 'artifacts', and becomes a label; in names and labels it is in lower case.
	// +kubebuilder:validation:Pattern="^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$"
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	PathPattern string `json:"pathPattern,omitempty"`

	// OutputArtifacts are the artifacts to make.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +required
	OutputArtifacts []OutputArtifact `json:"artifacts"`

	// CommonMetadata is put onto every ExternalArtifact that is made.
	// +optional
	CommonMetadata *CommonMetadata `json:"commonMetadata,omitempty"`
}

// CommonMetadata are labels and annotations.
type CommonMetadata struct {
	// Labels to be added.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to be added.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SourceReference names an object that has an artifact.
type SourceReference struct {
	// Alias is what copy operations call the source. It is unique in the generator.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$"
	// +kubebuilder:validation:MaxLength=63
	// +required
	Alias string `json:"alias"`

	// Name of the source.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Namespace of the source; that of the generator where none is set. Another one counts only with
	// '--no-cross-namespace-refs=false'.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Kind of the source.
	// +kubebuilder:validation:Enum=Bucket;GitRepository;OCIRepository;HelmChart;ExternalArtifact
	// +required
	Kind string `json:"kind"`
}

// OutputArtifact is an artifact that is made.
type OutputArtifact struct {
	// Name of the ExternalArtifact. It is unique in the generator. With spec.pathPattern it has '{name}' for what
	// that stands for.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Revision makes the artifact's revision that of a source, '@alias'. Without it the revision is 'latest@' and the
	// digest of the artifact, which moves with the content alone.
	// +kubebuilder:validation:Pattern="^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Revision string `json:"revision,omitempty"`

	// OriginRevision notes where the content came from as 'org.opencontainers.image.revision' in the artifact's metadata:
	// what a source, '@alias', has there itself or else its revision.
	// +kubebuilder:validation:Pattern="^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	OriginRevision string `json:"originRevision,omitempty"`

	// Copy are the operations that make the content, one after the other; later ones win.
	// +kubebuilder:validation:MinItems=1
	// +required
	Copy []CopyOperation `json:"copy"`
}

// CopyOperation copies a part of a source into an artifact.
type CopyOperation struct {
	// From is what is copied, '@alias/path': a file, a folder or a glob, from the source's root. A folder goes in under
	// its own name, of '<folder>/**' the contents do, and what other globs match keeps its whole path.
	// +kubebuilder:validation:Pattern="^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$"
	// +kubebuilder:validation:MaxLength=1024
	// +required
	From string `json:"from"`

	// To is where it is copied to, '@artifact/path'. A path that ends in a slash is a folder.
	// +kubebuilder:validation:Pattern="^@(artifact)/(.*)$"
	// +kubebuilder:validation:MaxLength=1024
	// +required
	To string `json:"to"`

	// Exclude are globs of what is left out, by its path or, without a slash, by its name.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Exclude []string `json:"exclude,omitempty"`

	// Strategy says what becomes of a file that is there: 'Overwrite', 'Merge' for YAML, or 'Extract' to unpack archives.
	// +kubebuilder:validation:Enum=Overwrite;Merge;Extract
	// +optional
	Strategy string `json:"strategy,omitempty"`
}

// ArtifactGeneratorStatus is what was last seen of an ArtifactGenerator. It is a report: nothing is decided by reading it.
type ArtifactGeneratorStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// Conditions holds the state of the object. Its reasons are documented with their constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Inventory lists the ExternalArtifacts that were made.
	// +optional
	Inventory []ExternalArtifactReference `json:"inventory,omitempty"`

	// ObservedSourcesDigest names what all sources had when they were last looked at.
	// +optional
	ObservedSourcesDigest string `json:"observedSourcesDigest,omitempty"`

	// ObservedGeneration is that of Ready. It is no field of the API.
	ObservedGeneration int64 `json:"-"`
}

// ExternalArtifactReference names an ExternalArtifact that was made, and what it is.
type ExternalArtifactReference struct {
	// Name of the ExternalArtifact.
	// +required
	Name string `json:"name"`

	// Namespace of the ExternalArtifact.
	// +required
	Namespace string `json:"namespace"`

	// Digest of the artifact.
	// +required
	Digest string `json:"digest"`

	// Filename is the last part of the artifact's path.
	// +required
	Filename string `json:"filename"`
}

// ArtifactGenerator makes artifacts of parts of others: of several sources one, or of one source many.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ag
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
type ArtifactGenerator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ArtifactGeneratorSpec   `json:"spec,omitempty"`
	Status ArtifactGeneratorStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// ArtifactGeneratorList is a list of ArtifactGenerators.
//
// +kubebuilder:object:root=true
type ArtifactGeneratorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArtifactGenerator `json:"items"`
}
