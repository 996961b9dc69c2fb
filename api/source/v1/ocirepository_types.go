package v1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// OCIRepositoryKind is the kind of an OCIRepository as it stands in manifests.
	OCIRepositoryKind = "OCIRepository"

	// OCIRepositoryPrefix is what the URL of an OCIRepository begins with.
	OCIRepositoryPrefix = "oci://"

	// DefaultOCITag is the tag of an OCIRepository that selects nothing with spec.ref.
	DefaultOCITag = "latest"

	// DefaultOCITimeout bounds the upstream work of an OCIRepository that sets no spec.timeout.
	DefaultOCITimeout = 60 * time.Second
)

// Values of spec.provider: how credentials for the registry are found.
const (
	// GenericOCIProvider takes credentials from Secrets: that of spec.secretRef, and the pull secrets of
	// spec.serviceAccountName. It is meant when no provider is set.
	GenericOCIProvider = "generic"
	// AmazonOCIProvider takes a token for the Elastic Container Registry from the workload's identity.
	AmazonOCIProvider = "aws"
	// AzureOCIProvider takes a token for the Azure Container Registry from the workload's identity.
	AzureOCIProvider = "azure"
	// GoogleOCIProvider takes a token for the Artifact Registry from the workload's identity.
	GoogleOCIProvider = "gcp"
)

// Values of spec.layerSelector.operation: what becomes of the selected layer.
const (
	// OCILayerExtract unpacks the layer, and archives what the ignore rules leave of it. It is meant when no
	// operation is set.
	OCILayerExtract = "extract"
	// OCILayerCopy keeps the layer byte for byte. Ignore rules do not apply.
	OCILayerCopy = "copy"
)

// Values of spec.verify.provider: the kind of signature that is demanded.
const (
	// CosignOCIVerification demands a signature made with cosign. It is meant when no provider is set.
	CosignOCIVerification = "cosign"
	// NotationOCIVerification demands a signature made with notation.
	NotationOCIVerification = "notation"
)

// OCIRepositorySpec says which layer of which manifest becomes an artifact, and how.
type OCIRepositorySpec struct {
	// URL of the repository: 'oci://', the registry's host, and the repository's name. A tag or digest has no place
	// in it; ref selects these.
	// +kubebuilder:validation:Pattern="^oci://.*$"
	// +required
	URL string `json:"url"`

	// Reference selects the manifest. Without it, the tag 'latest' is followed.
	// +optional
	Reference *OCIRepositoryRef `json:"ref,omitempty"`

	// LayerSelector says which layer of the manifest becomes the artifact, and how. Without it, the first one is
	// unpacked.
	// +optional
	LayerSelector *OCILayerSelector `json:"layerSelector,omitempty"`

	// Provider says where credentials come from: Secrets for 'generic', which is meant when nothing is set, else
	// a cloud's own identity. That is asked only where no Secret has credentials for the registry.
	// +kubebuilder:validation:Enum=generic;aws;azure;gcp
	// +kubebuilder:default:=generic
	// +optional
	Provider string `json:"provider,omitempty"`

	// SecretRef names the Secret with the credentials for the registry, in the same namespace. Its type is
	// 'kubernetes.io/dockerconfigjson'.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// Verify demands signatures by known signers before a manifest becomes an artifact.
	// +optional
	Verify *OCIRepositoryVerification `json:"verify,omitempty"`

	// ServiceAccountName names the ServiceAccount in the same namespace whose pull secrets are used towards the
	// registry, or whose identity is used towards the provider.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// CertSecretRef names the Secret with what TLS to the registry needs, in the same namespace: 'ca.crt' with
	// authorities that are trusted beside the system's, and 'tls.crt' and 'tls.key' to show to the registry.
	// +optional
	CertSecretRef *meta.LocalObjectReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names the Secret with the proxy to use for the registry, in the same namespace: 'address',
	// and where the proxy wants them 'username' and 'password'.
	// +optional
	ProxySecretRef *meta.LocalObjectReference `json:"proxySecretRef,omitempty"`

	// Interval at which upstream is asked for a new revision. Some jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +required
	Interval metav1.Duration `json:"interval"`

	// Timeout bounds the work done upstream for one attempt, the pull included. The operator may have set a ceiling, to
	// which it is cut.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m))+$"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Ignore says, in the .gitignore format, what is left out of the artifact. The first rule here or in a
	// .sourceignore file takes the place of the built-in exclusions; an empty value holds no rule. A layer that is
	// copied is left as it is.
	// +optional
	Ignore *string `json:"ignore,omitempty"`

	// Insecure allows a registry that speaks plain HTTP, or, without certSecretRef, one whose certificate nobody
	// vouches for.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Suspend stops all work for this object until it is taken back. The last artifact stays served.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// OCIRepositoryRef selects a manifest. Where several fields are set, the first of digest, semver and tag wins.
type OCIRepositoryRef struct {
	// Digest of the manifest to take, such as 'sha256:' and 64 hexadecimal digits. It never moves.
	// +optional
	Digest string `json:"digest,omitempty"`

	// SemVer is a range of semantic versions; of the tags in it, the highest is taken.
	// +optional
	SemVer string `json:"semver,omitempty"`

	// SemverFilter is a regular expression; tags that it does not match are out of the running for semver.
	// +optional
	SemverFilter string `json:"semverFilter,omitempty"`

	// Tag to take. A tag that moves is followed.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// OCILayerSelector says which layer of a manifest becomes the artifact, and how.
type OCILayerSelector struct {
	// MediaType of the layer; the first one that has it is taken. Without it, the first layer is.
	// +optional
	MediaType string `json:"mediaType,omitempty"`

	// Operation says what becomes of the layer: 'extract', which is meant when nothing is set, unpacks it and
	// archives what the ignore rules leave; 'copy' keeps it byte for byte.
	// +kubebuilder:validation:Enum=extract;copy
	// +optional
	Operation string `json:"operation,omitempty"`
}

// OCIRepositoryVerification says what kind of signature a manifest has to carry, and by whom.
type OCIRepositoryVerification struct {
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

	// TrustedRootSecretRef names the Secret with 'trusted_root.json', in the same namespace: the authorities and
	// logs behind keyless signatures, where these are not those of the public Sigstore instance.
	// +optional
	TrustedRootSecretRef *meta.LocalObjectReference `json:"trustedRootSecretRef,omitempty"`
}

// OIDCIdentityMatch describes identities that a keyless signature may come from. Both patterns have to match.
type OIDCIdentityMatch struct {
	// Issuer is a regular expression, in Go's syntax, for who vouched for the identity.
	// +required
	Issuer string `json:"issuer"`

	// Subject is a regular expression, in Go's syntax, for whom the issuer vouched for.
	// +required
	Subject string `json:"subject"`
}

// OCIRepositoryStatus is what was last seen of an OCIRepository. It is a report: nothing is decided by reading it.
type OCIRepositoryStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL is where the last artifact that was stored for the object is served, whichever it is.
	// +optional
	URL string `json:"url,omitempty"`

	// Artifact is the last artifact that was stored for the object. Its metadata holds the manifest's annotations.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// ContentConfigChecksum is a checksum over every field of the spec that shapes or proves the artifact, and
	// over what those fields refer to. A new value means that the artifact was built, or proven, again.
	// +optional
	ContentConfigChecksum string `json:"contentConfigChecksum,omitempty"`

	// ObservedIgnore is spec.ignore as the artifact was built with.
	// +optional
	ObservedIgnore *string `json:"observedIgnore,omitempty"`

	// ObservedLayerSelector is spec.layerSelector as the artifact was built with.
	// +optional
	ObservedLayerSelector *OCILayerSelector `json:"observedLayerSelector,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// OCIRepository follows a manifest in a registry and keeps an artifact of one of its layers.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ocirepo,categories={all,fluxcd,fluxcd-sources}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
type OCIRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OCIRepositorySpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status OCIRepositoryStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// OCIRepositoryList is a list of OCIRepositories.
//
// +kubebuilder:object:root=true
type OCIRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OCIRepository `json:"items"`
}
