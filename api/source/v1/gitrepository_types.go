package v1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GitRepositoryKind is the kind of a GitRepository as it stands in manifests.
	GitRepositoryKind = "GitRepository"

	// DefaultBranch is the branch of a GitRepository that selects nothing with spec.ref.
	DefaultBranch = "master"

	// DefaultGitTimeout bounds the upstream work of a GitRepository that sets no spec.timeout.
	DefaultGitTimeout = 60 * time.Second
)

// Values of spec.provider: how credentials for the repository are found.
const (
	// GitProviderGeneric takes credentials from spec.secretRef. It is meant when no provider is set.
	GitProviderGeneric = "generic"
	// GitProviderAWS signs requests to AWS CodeCommit with the workload's identity.
	GitProviderAWS = "aws"
	// GitProviderAzure takes a bearer token for Azure DevOps from the workload's identity.
	GitProviderAzure = "azure"
	// GitProviderGitHub takes an installation token of a GitHub App.
	GitProviderGitHub = "github"
)

// GitVerificationMode says which Git objects have to carry a valid signature.
type GitVerificationMode string

const (
	// ModeGitHEAD verifies the commit that HEAD of the checked-out reference points to.
	ModeGitHEAD GitVerificationMode = "HEAD"
	// ModeGitHEADLegacy is an older spelling of ModeGitHEAD and means the same.
	ModeGitHEADLegacy GitVerificationMode = "head"
	// ModeGitTag verifies the annotated tag that spec.ref.tag or spec.ref.semver selects.
	ModeGitTag GitVerificationMode = "Tag"
	// ModeGitTagAndHEAD verifies both the tag and the commit it points to.
	ModeGitTagAndHEAD GitVerificationMode = "TagAndHEAD"
)

// GitRepositorySpec says which Git revision becomes an artifact, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName) || (has(self.provider) && (self.provider == 'azure' || self.provider == 'aws'))",message="serviceAccountName can only be set when provider is 'azure' or 'aws'"
type GitRepositorySpec struct {
	// URL of the repository: HTTP(S) or SSH. The short form 'user@host:path' is not a URL; write
	// 'ssh://user@host/path'.
	// +kubebuilder:validation:Pattern="^(http|https|ssh)://.*$"
	// +required
	URL string `json:"url"`

	// SecretRef names the Secret with the credentials for the repository, in the same namespace.
	// HTTP(S) reads 'username' and 'password', or 'bearerToken', and for TLS 'ca.crt', 'tls.crt' and 'tls.key'.
	// SSH reads 'identity' and 'known_hosts', and 'password' as the key's passphrase.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// Provider says where credentials come from: the Secret named by secretRef for 'generic', which is meant
	// when nothing is set, else a cloud's or host's own identity.
	// +kubebuilder:validation:Enum=generic;aws;azure;github
	// +optional
	Provider string `json:"provider,omitempty"`

	// ServiceAccountName names the ServiceAccount in the same namespace whose identity is used towards the
	// provider. Only the providers 'azure' and 'aws' have one.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Interval at which upstream is asked for a new revision. Some jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +required
	Interval metav1.Duration `json:"interval"`

	// Timeout bounds the work done upstream for one attempt. The operator may have set a ceiling, to which it is cut.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m))+$"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Reference selects the revision. Without it, the branch 'master' is followed.
	// +optional
	Reference *GitRepositoryRef `json:"ref,omitempty"`

	// Verification demands signatures by known keys before a revision becomes an artifact.
	// +optional
	Verification *GitRepositoryVerification `json:"verify,omitempty"`

	// ProxySecretRef names the Secret with the proxy to use for the repository, in the same namespace: 'address',
	// and where the proxy wants them 'username' and 'password'.
	// +optional
	ProxySecretRef *meta.LocalObjectReference `json:"proxySecretRef,omitempty"`

	// Ignore says, in the .gitignore format, what is left out of the artifact. The first rule here or in a
	// .sourceignore file takes the place of the built-in exclusions; an empty value holds no rule.
	// +optional
	Ignore *string `json:"ignore,omitempty"`

	// Suspend stops all work for this object until it is taken back. The last artifact stays served.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// RecurseSubmodules puts the contents of submodules into the artifact, with the same credentials.
	// +optional
	RecurseSubmodules bool `json:"recurseSubmodules,omitempty"`

	// Include lists artifacts of other GitRepositories in the same namespace that are copied into this one's,
	// in the order given.
	// +optional
	Include []GitRepositoryInclude `json:"include,omitempty"`

	// SparseCheckout lists the folders to put into the artifact. Without it, everything is.
	// +optional
	SparseCheckout []string `json:"sparseCheckout,omitempty"`
}

// GitRepositoryRef selects a revision. Where several fields are set, the first of commit, name, tag, semver and
// branch wins.
type GitRepositoryRef struct {
	// Branch whose newest commit is followed.
	// +optional
	Branch string `json:"branch,omitempty"`

	// Tag to take. A tag that moves is followed.
	// +optional
	Tag string `json:"tag,omitempty"`

	// SemVer is a range of semantic versions; of the tags in it, the highest is taken.
	// +optional
	SemVer string `json:"semver,omitempty"`

	// Name is a full reference, such as 'refs/heads/main' or 'refs/pull/420/head'.
	// +optional
	Name string `json:"name,omitempty"`

	// Commit is the id of the commit to take. A branch or name beside it helps to find the commit.
	// +optional
	Commit string `json:"commit,omitempty"`
}

// GitRepositoryVerification says which objects have to be signed, and by whom.
type GitRepositoryVerification struct {
	// Mode says which objects have to be signed: the commit ('HEAD', or 'head' as it used to be spelt), the tag,
	// or both.
	// +kubebuilder:validation:Enum=head;HEAD;Tag;TagAndHEAD
	// +kubebuilder:default:=HEAD
	// +optional
	Mode GitVerificationMode `json:"mode,omitempty"`

	// SecretRef names the Secret with the trusted public keys, in the same namespace.
	// +required
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}

// GitRepositoryInclude copies a part of another GitRepository's artifact.
type GitRepositoryInclude struct {
	// GitRepositoryRef names the GitRepository to copy from, in the same namespace.
	// +required
	GitRepositoryRef meta.LocalObjectReference `json:"repository"`

	// FromPath is what to copy, relative to the root of the included artifact. Without it, everything is.
	// +optional
	FromPath string `json:"fromPath,omitempty"`

	// ToPath is where to copy to, relative to the root of this artifact. Without it, to a folder named like the
	// included repository.
	// +optional
	ToPath string `json:"toPath,omitempty"`
}

// GitRepositoryStatus is what was last seen of a GitRepository. It is a report: nothing is decided by reading it.
type GitRepositoryStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Artifact is the last artifact that was stored for the object.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// IncludedArtifacts lists the artifacts that were copied into this one, in the order of spec.include.
	// +optional
	IncludedArtifacts []*meta.Artifact `json:"includedArtifacts,omitempty"`

	// ContentConfigChecksum is a checksum over every field of the spec that shapes or proves the artifact, and
	// over what those fields refer to. A new value means that the artifact was built, or proven, again.
	// +optional
	ContentConfigChecksum string `json:"contentConfigChecksum,omitempty"`

	// ObservedIgnore is spec.ignore as the artifact was built with.
	// +optional
	ObservedIgnore *string `json:"observedIgnore,omitempty"`

	// ObservedRecurseSubmodules is spec.recurseSubmodules as the artifact was built with.
	// +optional
	ObservedRecurseSubmodules bool `json:"observedRecurseSubmodules,omitempty"`

	// ObservedInclude is spec.include as the artifact was built with.
	// +optional
	ObservedInclude []GitRepositoryInclude `json:"observedInclude,omitempty"`

	// ObservedSparseCheckout is spec.sparseCheckout as the artifact was built with.
	// +optional
	ObservedSparseCheckout []string `json:"observedSparseCheckout,omitempty"`

	// SourceVerificationMode is the mode in which the revision was last verified.
	// +optional
	SourceVerificationMode *GitVerificationMode `json:"sourceVerificationMode,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// GitRepository follows a revision of a Git repository and keeps an artifact of its tree.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gitrepo,categories={all,fluxcd,fluxcd-sources}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description=""
type GitRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GitRepositorySpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status GitRepositoryStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// GitRepositoryList is a list of GitRepositories.
//
// +kubebuilder:object:root=true
type GitRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitRepository `json:"items"`
}
