package v1alpha1

// DefaultConfigPolicy says whether an installation gets the default configuration of its release.
type DefaultConfigPolicy string

const (
	// DefaultConfigCreate creates it once. It is meant when nothing is set.
	DefaultConfigCreate DefaultConfigPolicy = "Create"
	// DefaultConfigIgnore does without.
	DefaultConfigIgnore DefaultConfigPolicy = "Ignore"
)

// Kinds that spec.config.substituteFrom may name.
const (
	// SubstituteFromConfigMap takes variables from a ConfigMap.
	SubstituteFromConfigMap = "ConfigMap"
	// SubstituteFromSecret takes variables from a Secret.
	SubstituteFromSecret = "Secret"
)

// InstallationConfig says in what an installation differs from the release as published.
type InstallationConfig struct {
	// Substitute gives values to the variables in the release's manifests, which are written '${name}'. A value stays
	// the kind of scalar that the manifest has there. They win over those of substituteFrom.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Substitute map[string]string `json:"substitute,omitempty"`

	// SubstituteFrom names ConfigMaps and Secrets in the same namespace with values for variables. Of two that have
	// the same variable, the later wins.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	SubstituteFrom []SubstituteReference `json:"substituteFrom,omitempty"`

	// Patches change objects of the release, one after the other.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Patches []Patch `json:"patches,omitempty"`

	// Images gives containers other images.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Images []Image `json:"images,omitempty"`

	// TargetNamespace is the namespace that all of the release's namespaced objects go to. Without it, each goes where
	// its manifest says, and one that says nothing goes to this object's namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// CommonMetadata is put on every object of the release.
	// +optional
	CommonMetadata *CommonMetadata `json:"commonMetadata,omitempty"`

	// DefaultConfig is 'Create', where the release's default configuration is created once, or 'Ignore'.
	// +kubebuilder:validation:Enum=Create;Ignore
	// +kubebuilder:default=Create
	// +optional
	DefaultConfig DefaultConfigPolicy `json:"defaultConfig,omitempty"`
}

// SubstituteReference names a ConfigMap or Secret in the same namespace whose keys are variables.
type SubstituteReference struct {
	// Kind of the object.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	// +required
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Optional says that the object may be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Patch changes objects of a release, as in a kustomization.
type Patch struct {
	// Patch is a strategic merge patch, or a list of JSON patch operations, in YAML.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Patch string `json:"patch"`

	// Target selects the objects. Without it, the object that a strategic merge patch names is meant.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`
}

// PatchTarget selects objects. All that is set has to match; group, version, kind, name and namespace are regular
// expressions over the whole value.
//
// +kubebuilder:validation:MinProperties=1
type PatchTarget struct {
	// Group of the objects' kind.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the objects' kind.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Version string `json:"version,omitempty"`

	// Kind of the objects.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the objects.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Name string `json:"name,omitempty"`

	// Namespace of the objects.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// LabelSelector over the objects' labels, as kubectl takes it: 'app=web,tier!=cache'.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// AnnotationSelector is the same over the objects' annotations.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// Image gives the containers that use an image another one.
//
// +kubebuilder:validation:XValidation:rule="has(self.newName) || has(self.newTag) || has(self.digest)",message="newName, newTag or digest has to be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.newTag) && has(self.digest))",message="only one of newTag and digest may be set"
type Image struct {
	// Name of the image in the release's manifests, without tag or digest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`

	// NewName takes the place of the name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NewName string `json:"newName,omitempty"`

	// NewTag takes the place of the tag or digest.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`
	// +optional
	NewTag string `json:"newTag,omitempty"`

	// Digest takes the place of the tag or digest.
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`
	// +optional
	Digest string `json:"digest,omitempty"`
}

// CommonMetadata is put on every object of a release.
//
// +kubebuilder:validation:MinProperties=1
type CommonMetadata struct {
	// Labels to put on every object.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to put on every object.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
