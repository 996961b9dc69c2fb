package v1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// HelmChartKind is the kind of a HelmChart as it stands in manifests.
	HelmChartKind = "HelmChart"

	// DefaultChartVersion is the range that spec.version of a HelmChart stands for where none is set: the newest
	// version that is no prerelease.
	DefaultChartVersion = "*"
)

// Values of spec.reconcileStrategy: what makes a new package of a chart that lies in a source.
const (
	// ReconcileStrategyChartVersion makes one when the chart's version is another. It is meant when nothing is set.
	ReconcileStrategyChartVersion = "ChartVersion"
	// ReconcileStrategyRevision makes one at each revision of the source, and adds the revision to the version.
	ReconcileStrategyRevision = "Revision"
)

// HelmChartSpec says which chart of which source becomes an artifact, and how it is packaged.
//
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || self.sourceRef.kind == 'HelmRepository'",message="spec.verify is only supported when spec.sourceRef.kind is 'HelmRepository'"
type HelmChartSpec struct {
	// Chart is the chart's name in a HelmRepository, or its path from the root of any other source: a folder, or a
	// package.
	// +required
	Chart string `json:"chart"`

	// Version is the version or the range of semantic versions to take from a HelmRepository; of several, the highest
	// is taken. It means nothing for other sources.
	// +kubebuilder:default:=*
	// +optional
	Version string `json:"version,omitempty"`

	// SourceRef names the source that has the chart, in the same namespace.
	// +required
	SourceRef LocalHelmChartSourceReference `json:"sourceRef"`

	// Interval at which the source is looked at for a new version. Some jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +required
	Interval metav1.Duration `json:"interval"`

	// ReconcileStrategy says what makes a new package: 'ChartVersion', the chart's own version, or 'Revision', each
	// revision of the source. For a HelmRepository both are the same.
	// +kubebuilder:validation:Enum=ChartVersion;Revision
	// +kubebuilder:default:=ChartVersion
	// +optional
	ReconcileStrategy string `json:"reconcileStrategy,omitempty"`

	// ValuesFiles lists files that are merged, in this order, into the default values of the package. They are paths
	// in the chart for a HelmRepository, and paths from the root of any other source. The chart's own 'values.yaml'
	// counts only where it is listed.
	// +optional
	ValuesFiles []string `json:"valuesFiles,omitempty"`

	// IgnoreMissingValuesFiles leaves out the files of valuesFiles that are not there, instead of failing.
	// +optional
	IgnoreMissingValuesFiles bool `json:"ignoreMissingValuesFiles,omitempty"`

	// Suspend stops all work for this object until it is taken back. The last artifact stays served.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Verify demands signatures by known signers before a chart becomes an artifact. It counts for a HelmRepository of
	// type 'oci'.
	// +optional
	Verify *HelmChartVerification `json:"verify,omitempty"`
}

// LocalHelmChartSourceReference names the source of a chart, in the same namespace.
type LocalHelmChartSourceReference struct {
	// APIVersion of the source. Nothing reads it.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the source.
	// +kubebuilder:validation:Enum=HelmRepository;GitRepository;Bucket
	// +required
	Kind string `json:"kind"`

	// Name of the source.
	// +required
	Name string `json:"name"`
}

// HelmChartVerification says what kind of signature a chart has to carry, and by whom.
type HelmChartVerification struct {
	// Provider is the tool whose signatures are demanded.
	// +kubebuilder:validation:Enum=cosign;notation
	// +kubebuilder:default:=cosign
	// +required
	Provider string `json:"provider"`

	// SecretRef names the Secret with what is trusted, in the same namespace. For cosign, public keys under names
	// that end in '.pub'; for notation, 'trustpolicy.json', and certificates under names that end in '.crt' or
	// '.pem'. Cosign without it demands a keyless signature.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// MatchOIDCIdentity lists the identities that a keyless signature may come from; one of them has to match.
	// +optional
	MatchOIDCIdentity []OIDCIdentityMatch `json:"matchOIDCIdentity,omitempty"`
}

// HelmChartStatus is what was last seen of a HelmChart. It is a report: nothing is decided by reading it.
type HelmChartStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ObservedSourceArtifactRevision is the revision of the source's artifact that was last looked at. It is empty
	// for a HelmRepository of type 'oci', which has none.
	// +optional
	ObservedSourceArtifactRevision string `json:"observedSourceArtifactRevision,omitempty"`

	// ObservedChartName is the name of the chart that was last found.
	// +optional
	ObservedChartName string `json:"observedChartName,omitempty"`

	// ObservedValuesFiles lists the files of spec.valuesFiles that were there and are part of the package. It is
	// written with spec.ignoreMissingValuesFiles only.
	// +optional
	ObservedValuesFiles []string `json:"observedValuesFiles,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL is where the last artifact that was stored for the object is served, whichever it is.
	// +optional
	URL string `json:"url,omitempty"`

	// Artifact is the last package that was stored for the object.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// ContentConfigChecksum is a checksum over every field of the spec that shapes or proves the artifact, and
	// over what those fields refer to. A new value means that the artifact was built, or proven, again.
	// +optional
	ContentConfigChecksum string `json:"contentConfigChecksum,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// HelmChart follows a chart in a source and keeps a package of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hc,categories={all,fluxcd,fluxcd-sources}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.chart`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Source Kind",type=string,JSONPath=`.spec.sourceRef.kind`
// +kubebuilder:printcolumn:name="Source Name",type=string,JSONPath=`.spec.sourceRef.name`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
type HelmChart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HelmChartSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status HelmChartStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// HelmChartList is a list of HelmCharts.
//
// +kubebuilder:object:root=true
type HelmChartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmChart `json:"items"`
}
