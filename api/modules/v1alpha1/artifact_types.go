package v1alpha1

// TemplateArtifact says where a release's manifests are: in a registry, in Git, or in a source object's artifact.
//
// +kubebuilder:validation:XValidation:rule="[has(self.oci), has(self.git), has(self.sourceRef)].filter(x, x).size() == 1",message="exactly one of oci, git and sourceRef has to be set"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || has(self.sourceRef) && self.sourceRef.kind == 'ExternalArtifact'",message="digest goes with a sourceRef of the kind ExternalArtifact"
type TemplateArtifact struct {
	// OCI is an artifact in a registry. An OCIRepository is made for it in the template's namespace while the release
	// is wanted.
	// +optional
	OCI *OCIArtifact `json:"oci,omitempty"`

	// Git is a commit. A GitRepository is made for it in the template's namespace while the release is wanted.
	// +optional
	Git *GitArtifact `json:"git,omitempty"`

	// SourceRef names an object with an artifact in the template's namespace, say an OCIRepository. It has to be
	// pinned: select by digest or commit, so that it cannot move. An ExternalArtifact is pinned by 'digest'.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// Digest of the artifact of an ExternalArtifact, as its status has it. One with another digest is not used.
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`
	// +optional
	Digest string `json:"digest,omitempty"`

	// Path of the folder in the artifact that is installed, relative to its root, which is meant when nothing is set.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="path has to stay inside the artifact: relative, and without '..'"
	// +optional
	Path string `json:"path,omitempty"`
}

// OCIArtifact is an artifact in a registry, and how to reach it.
type OCIArtifact struct {
	// Repository is 'oci://', the registry's host, and the repository's name, without a tag or digest.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^oci://[^/?#@\s]+/[^:?#@\s]+$`
	// +required
	Repository string `json:"repository"`

	// Digest of the manifest: the algorithm, a colon, and hexadecimal digits.
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`
	// +required
	Digest string `json:"digest"`

	// Tag that the digest had when the release was made. It is not followed; where the template has no version, a tag
	// that is a semantic version gives it.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`
	// +optional
	Tag string `json:"tag,omitempty"`

	// LayerSelector says which layer of the manifest holds the release. Without it, the first one does.
	// +optional
	LayerSelector *LayerSelector `json:"layerSelector,omitempty"`

	// Provider says where credentials come from: Secrets for 'generic', which is meant when nothing is set, else a
	// cloud's own identity.
	// +kubebuilder:validation:Enum=generic;aws;azure;gcp
	// +optional
	Provider string `json:"provider,omitempty"`

	// SecretRef names the Secret with the credentials for the registry, of type 'kubernetes.io/dockerconfigjson'.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// CertSecretRef names the Secret with what TLS to the registry needs: 'ca.crt', 'tls.crt' and 'tls.key'.
	// +optional
	CertSecretRef *LocalReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names the Secret with the proxy to use: 'address', 'username' and 'password'.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// ServiceAccountName names the ServiceAccount whose pull secrets are used towards the registry, or whose identity
	// is used towards the provider.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Insecure allows a registry that speaks plain HTTP, or, without certSecretRef, one whose certificate nobody
	// vouches for.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// LayerSelector selects a layer of a manifest.
type LayerSelector struct {
	// MediaType of the layer; the first one that has it is taken.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	MediaType string `json:"mediaType"`
}

// GitArtifact is a commit in a Git repository, and how to reach it.
type GitArtifact struct {
	// URL of the repository, over HTTP, HTTPS or SSH.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(http|https|ssh)://[^\s]+$`
	// +required
	URL string `json:"url"`

	// Commit is the full name of the commit: 40 hexadecimal digits, or 64 where the repository uses SHA-256.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})$`
	// +required
	Commit string `json:"commit"`

	// Tag that the commit had when the release was made. It is not followed.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Tag string `json:"tag,omitempty"`

	// SecretRef names the Secret with the credentials for the repository, as a GitRepository takes them.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}
