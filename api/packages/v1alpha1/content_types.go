package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PackageContext changes the context of a package.
//
// +kubebuilder:validation:XValidation:rule="!has(self.data) || !has(self.removeKeys) || self.removeKeys.all(key, !(key in self.data))",message="a key is either in data or in removeKeys"
type PackageContext struct {
	// Data are keys that are set in the context. What leaves this field leaves the context. 'name' and 'package-path' are
	// the package's own.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!('name' in self) && !('package-path' in self)",message="the keys 'name' and 'package-path' are the package's own"
	// +optional
	Data map[string]string `json:"data,omitempty"`

	// RemoveKeys are keys that the context has from upstream and that are taken out of it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!('name' in self) && !('package-path' in self)",message="the keys 'name' and 'package-path' are the package's own"
	// +optional
	RemoveKeys []string `json:"removeKeys,omitempty"`
}

// Pipeline has functions that a package gets in addition to its own.
type Pipeline struct {
	// Mutators change the package's objects, one after the other.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Mutators []Function `json:"mutators,omitempty"`

	// Validators look at the package's objects once all mutators have run.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Validators []Function `json:"validators,omitempty"`
}

// Function is run in the process of the controller. It is known by the name of its image, whatever the registry and tag.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.configPath) && has(self.configMap))",message="only one of configPath and configMap may be set"
type Function struct {
	// Image of the function, such as 'set-labels'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f]+$`
	// +required
	Image string `json:"image"`

	// Name of the entry, for people.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// ConfigPath is the file in the package that configures the function.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^/\x00-\x1f\x7f\\]+(/[^/\x00-\x1f\x7f\\]+)*$`
	// +kubebuilder:validation:XValidation:rule="self.split('/').all(part, part != '.' && part != '..')",message="has to be a path inside the package"
	// +optional
	ConfigPath string `json:"configPath,omitempty"`

	// ConfigMap configures the function.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	ConfigMap map[string]string `json:"configMap,omitempty"`

	// Selectors choose the objects that the function gets: those that one of them selects. Without them, it gets all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Selectors []Selector `json:"selectors,omitempty"`

	// Exclude chooses, of these, objects that the function does not get.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Exclude []Selector `json:"exclude,omitempty"`
}

// Selector selects objects of a package. All that is set has to be equal.
//
// +kubebuilder:validation:MinProperties=1
type Selector struct {
	// APIVersion of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// Namespace of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Labels that the objects have, among others.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations that the objects have, among others.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Injector says which object of the cluster fills an injection point. The point is an object of the package, annotated
// with 'kpt.dev/config-injection'; it takes the data of a ConfigMap or Secret, and the spec of anything else.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.labelSelector))",message="only one of name and labelSelector may be set"
type Injector struct {
	// Group of the points that this is for. Without it, every group is meant; the empty one is that of Kubernetes' core.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	// +optional
	Group *string `json:"group,omitempty"`

	// Version of the points that this is for. Without it, every version is meant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Version *string `json:"version,omitempty"`

	// Kind of the points that this is for. Without it, every kind is meant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	// +optional
	Kind *string `json:"kind,omitempty"`

	// Point is the name of the point that this is for. Without it, every point of the kind is meant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Point string `json:"point,omitempty"`

	// Name of the object in the cluster, which is of the point's kind. Without name and labelSelector, it is the point's
	// own name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects the object by its labels. Of several that it selects, none is taken.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Namespace of the object. Without it, that of the PackageVariant. Another one takes a ServiceAccount that may read
	// the object there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// AllowSecrets lets this injector fill points of kind Secret. What it injects is written to Git, where everyone who
	// reads the repository reads it.
	// +optional
	AllowSecrets bool `json:"allowSecrets,omitempty"`
}
