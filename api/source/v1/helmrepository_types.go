package v1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// HelmRepositoryKind is the kind of a HelmRepository as it stands in manifests.
	HelmRepositoryKind = "HelmRepository"

	// DefaultHelmInterval is how often the index of a HelmRepository that sets no spec.interval is asked for.
	DefaultHelmInterval = time.Minute

	// DefaultHelmTimeout bounds the upstream work of a HelmRepository that sets no spec.timeout.
	DefaultHelmTimeout = time.Minute
)

// Values of spec.type: what kind of server the charts lie on.
const (
	// HelmRepositoryTypeDefault is a server of files with an index. It is meant when no type is set.
	HelmRepositoryTypeDefault = "default"
	// HelmRepositoryTypeOCI is a registry. The object only lends its settings to HelmCharts then: nothing is fetched
	// for it, and nothing is written to it.
	HelmRepositoryTypeOCI = "oci"
)

// HelmRepositorySpec says where charts lie, and how they are reached.
type HelmRepositorySpec struct {
	// URL of the repository: an address below which 'index.yaml' lies, or with type 'oci' the registry's host and the
	// name that the charts' names are added to.
	// +kubebuilder:validation:Pattern="^(http|https|oci)://.*$"
	// +required
	URL string `json:"url"`

	// SecretRef names the Secret with the credentials for the repository, in the same namespace: 'username' and
	// 'password'. For type 'oci', its type may be 'kubernetes.io/dockerconfigjson' too. The keys 'caFile', 'certFile'
	// and 'keyFile' are deprecated: they count only where certSecretRef is not set.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// CertSecretRef names the Secret with what TLS to the repository needs, in the same namespace: 'ca.crt' with
	// authorities that are trusted beside the system's, and 'tls.crt' and 'tls.key' to show to the server.
	// +optional
	CertSecretRef *meta.LocalObjectReference `json:"certSecretRef,omitempty"`

	// PassCredentials sends the credentials to every host that the index names. Without it they go only where scheme,
	// host and port are those of the URL.
	// +optional
	PassCredentials bool `json:"passCredentials,omitempty"`

	// Interval at which upstream is asked for a new index; a minute where none is set. Some jitter is added, to spread
	// the load. For type 'oci' it means nothing.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	Interval metav1.Duration `json:"interval,omitempty"`

	// Insecure allows a registry that speaks plain HTTP. It counts for type 'oci' only.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Timeout bounds the work done upstream for one attempt, the download included; a minute where none is set. The
	// operator may have set a ceiling, to which it is cut.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m))+$"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Suspend stops all work for this object until it is taken back. The last artifact stays served.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// AccessFrom is accepted and has no effect, as in Flux: objects of other namespaces never reach this one.
	// +optional
	AccessFrom *AccessFrom `json:"accessFrom,omitempty"`

	// Type of the repository: 'default', which is meant when nothing is set, for one with an index, or 'oci'.
	// +kubebuilder:validation:Enum=default;oci
	// +optional
	Type string `json:"type,omitempty"`

	// Provider says where credentials come from: Secrets for 'generic', which is meant when nothing is set, else a
	// cloud's own identity. It counts for type 'oci' only, and only where secretRef is not set.
	// +kubebuilder:validation:Enum=generic;aws;azure;gcp
	// +kubebuilder:default:=generic
	// +optional
	Provider string `json:"provider,omitempty"`
}

// AccessFrom says from which other namespaces an object may be used. Nothing reads it.
type AccessFrom struct {
	// NamespaceSelectors lists the namespaces; one of them has to match.
	// +required
	NamespaceSelectors []NamespaceSelector `json:"namespaceSelectors"`
}

// NamespaceSelector selects namespaces by their labels.
type NamespaceSelector struct {
	// MatchLabels holds the labels that a namespace has to have, all of them. An empty one matches every namespace.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// HelmRepositoryStatus is what was last seen of a HelmRepository. It is a report: nothing is decided by reading it.
type HelmRepositoryStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL is where the last artifact that was stored for the object is served, whichever it is.
	// +optional
	URL string `json:"url,omitempty"`

	// Artifact is the last index that was stored for the object.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// ContentConfigChecksum is a checksum over every field of the spec that shapes or proves the artifact, and
	// over what those fields refer to. A new value means that the artifact was built, or proven, again.
	// +optional
	ContentConfigChecksum string `json:"contentConfigChecksum,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// HelmRepository follows the index of a Helm repository and keeps an artifact of it, or lends a registry's settings to
// the HelmCharts that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=helmrepo,categories={all,fluxcd,fluxcd-sources}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
type HelmRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HelmRepositorySpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status HelmRepositoryStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// HelmRepositoryList is a list of HelmRepositories.
//
// +kubebuilder:object:root=true
type HelmRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmRepository `json:"items"`
}
