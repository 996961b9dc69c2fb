package v1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// BucketKind is the kind of a Bucket as it stands in manifests.
	BucketKind = "Bucket"

	// DefaultBucketTimeout bounds the upstream work of a Bucket that sets no spec.timeout.
	DefaultBucketTimeout = 60 * time.Second
)

// Values of spec.provider: which protocol the bucket is asked by, and where credentials come from.
const (
	// GenericBucketProvider speaks S3, with keys from a Secret or from an STS, or anonymously. It is meant when no
	// provider is set.
	GenericBucketProvider = "generic"
	// AmazonBucketProvider speaks S3, with keys from a Secret or from the workload's identity.
	AmazonBucketProvider = "aws"
	// GoogleBucketProvider speaks Google Cloud Storage's own protocol.
	GoogleBucketProvider = "gcp"
	// AzureBucketProvider speaks Azure Blob Storage's own protocol.
	AzureBucketProvider = "azure"
)

// Values of spec.sts.provider: how temporary keys are asked for.
const (
	// AmazonSTSProvider exchanges the workload's identity at Amazon's STS.
	AmazonSTSProvider = "aws"
	// LDAPSTSProvider exchanges user and password at a MinIO server that asks LDAP.
	LDAPSTSProvider = "ldap"
)

// BucketSpec says which objects of which bucket become an artifact.
//
// +kubebuilder:validation:XValidation:rule="self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)", message="STS configuration is only supported for the 'aws' and 'generic' Bucket providers"
// +kubebuilder:validation:XValidation:rule="self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'", message="'aws' is the only supported STS provider for the 'aws' Bucket provider"
// +kubebuilder:validation:XValidation:rule="self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'", message="'ldap' is the only supported STS provider for the 'generic' Bucket provider"
// +kubebuilder:validation:XValidation:rule="!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)", message="spec.sts.secretRef is not required for the 'aws' STS provider"
// +kubebuilder:validation:XValidation:rule="!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)", message="spec.sts.certSecretRef is not required for the 'aws' STS provider"
// +kubebuilder:validation:XValidation:rule="self.provider != 'generic' || !has(self.serviceAccountName)", message="ServiceAccountName is not supported for the 'generic' Bucket provider"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || !has(self.serviceAccountName)", message="cannot set both .spec.secretRef and .spec.serviceAccountName"
type BucketSpec struct {
	// Provider says which protocol the bucket is asked by, and where credentials come from: 'generic', which is meant
	// when nothing is set, is S3 with keys from Secrets; the others are clouds, with their own identities beside these.
	// +kubebuilder:validation:Enum=generic;aws;gcp;azure
	// +kubebuilder:default:=generic
	// +optional
	Provider string `json:"provider,omitempty"`

	// BucketName is the name of the bucket, of the container for 'azure'.
	// +required
	BucketName string `json:"bucketName"`

	// Endpoint is where the bucket is asked for: host or host:port for S3, a URL for 'azure'. It means nothing to 'gcp'.
	// +required
	Endpoint string `json:"endpoint"`

	// STS says where temporary keys are asked for, and how.
	// +optional
	STS *BucketSTSSpec `json:"sts,omitempty"`

	// Insecure allows a server that speaks plain HTTP.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Region the bucket is in. Without it the server is asked.
	// +optional
	Region string `json:"region,omitempty"`

	// Prefix is what the keys of the objects begin with. It stays part of their paths in the artifact.
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// SecretRef names the Secret with the credentials for the bucket, in the same namespace.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// ServiceAccountName names the ServiceAccount in the same namespace whose identity is used towards the cloud.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// CertSecretRef names the Secret with what TLS to the bucket needs, in the same namespace: 'ca.crt' with
	// authorities that are trusted beside the system's, and 'tls.crt' and 'tls.key' to show to the server. Only
	// 'generic' looks at it.
	// +optional
	CertSecretRef *meta.LocalObjectReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names the Secret with the proxy to use for the bucket, in the same namespace: 'address', and
	// where the proxy wants them 'username' and 'password'.
	// +optional
	ProxySecretRef *meta.LocalObjectReference `json:"proxySecretRef,omitempty"`

	// Interval at which the bucket is listed. Some jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +required
	Interval metav1.Duration `json:"interval"`

	// Timeout bounds the work done upstream for one attempt, downloads included. The operator may have set a ceiling,
	// to which it is cut.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m))+$"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Ignore says, in the .gitignore format, which objects are left out of the artifact. Its rules come after those of
	// the bucket's own .sourceignore. Nothing is left out otherwise.
	// +optional
	Ignore *string `json:"ignore,omitempty"`

	// Suspend stops all work for this object until it is taken back. The last artifact stays served.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// BucketSTSSpec says where temporary keys are asked for, and how.
type BucketSTSSpec struct {
	// Provider is the kind of the service.
	// +kubebuilder:validation:Enum=aws;ldap
	// +required
	Provider string `json:"provider"`

	// Endpoint is the URL of the service.
	// +kubebuilder:validation:Pattern="^(http|https)://.*$"
	// +required
	Endpoint string `json:"endpoint"`

	// SecretRef names the Secret with what logs in to the service, in the same namespace: 'username' and 'password'
	// for 'ldap'.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// CertSecretRef names the Secret with what TLS to the service needs, in the same namespace: 'ca.crt', and 'tls.crt'
	// and 'tls.key', as spec.certSecretRef has for the bucket. Only 'ldap' looks at it.
	// +optional
	CertSecretRef *meta.LocalObjectReference `json:"certSecretRef,omitempty"`
}

// BucketStatus is what was last seen of a Bucket. It is a report: nothing is decided by reading it.
type BucketStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// URL is where the last artifact that was stored for the object is served, whichever it is.
	// +optional
	URL string `json:"url,omitempty"`

	// Artifact is the last artifact that was stored for the object.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// ContentConfigChecksum is a checksum over every field of the spec that shapes the artifact of given objects. Which
	// objects are in it the revision tells, so that it stays the same for one version of the controller.
	// +optional
	ContentConfigChecksum string `json:"contentConfigChecksum,omitempty"`

	// ObservedIgnore is spec.ignore as the artifact was built with.
	// +optional
	ObservedIgnore *string `json:"observedIgnore,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// Bucket follows the objects of a bucket in an object storage and keeps an artifact of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,fluxcd,fluxcd-sources}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BucketSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status BucketStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// BucketList is a list of Buckets.
//
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bucket `json:"items"`
}
