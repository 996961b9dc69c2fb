package v1alpha1

// VariantTemplate says what the variants of a target are. What ends in 'Expr' is an expression in CEL whose result is a text; see
// the kind's page for what it may use. An expression comes before what is set as it is.
type VariantTemplate struct {
	// Downstream says where the package is kept: without it, in the target's Repository and package.
	// +optional
	Downstream *DownstreamTemplate `json:"downstream,omitempty"`

	// Labels are put on the package.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('packages.sluice.dev/'))",message="labels of packages.sluice.dev are the controller's"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// LabelExprs are labels that depend on the target.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	LabelExprs []MapExpr `json:"labelExprs,omitempty"`

	// Annotations are put on the package.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('packages.sluice.dev/'))",message="annotations of packages.sluice.dev are the controller's"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// AnnotationExprs are annotations that depend on the target.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	AnnotationExprs []MapExpr `json:"annotationExprs,omitempty"`

	// PackageContext changes the package's context.
	// +optional
	PackageContext *PackageContextTemplate `json:"packageContext,omitempty"`

	// Pipeline has functions that the package gets in addition to its own.
	// +optional
	Pipeline *PipelineTemplate `json:"pipeline,omitempty"`

	// Injectors say which objects of the cluster fill the package's injection points.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Injectors []InjectorTemplate `json:"injectors,omitempty"`

	// Bindings say what the package's binding points hold.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Bindings []BindingTemplate `json:"bindings,omitempty"`

	// Namespace that the package's objects go to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// NamespaceExpr is a namespace that depends on the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	NamespaceExpr string `json:"namespaceExpr,omitempty"`

	// AdoptionPolicy of the variants.
	// +kubebuilder:validation:Enum=adoptNone;adoptExisting
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// DeletionPolicy of the variants. It decides what becomes of the package of a target that goes.
	// +kubebuilder:validation:Enum=delete;orphan
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Approval says who approves the changes of the variants.
	// +optional
	Approval *Approval `json:"approval,omitempty"`

	// ConflictPolicy of the variants. The default is 'Local'.
	// +kubebuilder:validation:Enum=Upstream;Local;Fail
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// ServiceAccountName of the variants, as which objects are read for injection and bindings.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// DownstreamTemplate says where a variant is kept.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.repo) && has(self.repoExpr))",message="only one of repo and repoExpr may be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.package) && has(self.packageExpr))",message="only one of package and packageExpr may be set"
type DownstreamTemplate struct {
	// Repo is the name of the Repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Repo string `json:"repo,omitempty"`

	// RepoExpr is the name of the Repository. It may not use 'repository', which depends on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	RepoExpr string `json:"repoExpr,omitempty"`

	// Package is the package's path below the Repository's directory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Package string `json:"package,omitempty"`

	// PackageExpr is the package's path below the Repository's directory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	PackageExpr string `json:"packageExpr,omitempty"`
}

// MapExpr is an entry of a map that depends on the target.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) != has(self.keyExpr)",message="exactly one of key and keyExpr has to be set"
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.valueExpr)",message="exactly one of value and valueExpr has to be set"
type MapExpr struct {
	// Key of the entry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Key string `json:"key,omitempty"`

	// KeyExpr is the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	KeyExpr string `json:"keyExpr,omitempty"`

	// Value of the entry.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value *string `json:"value,omitempty"`

	// ValueExpr is the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ValueExpr string `json:"valueExpr,omitempty"`
}

// PackageContextTemplate changes the context of a package.
type PackageContextTemplate struct {
	PackageContext `json:",inline"`

	// DataExprs are keys that depend on the target.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	DataExprs []MapExpr `json:"dataExprs,omitempty"`

	// RemoveKeyExprs are keys to take out that depend on the target.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	// +optional
	RemoveKeyExprs []string `json:"removeKeyExprs,omitempty"`
}

// PipelineTemplate has functions that a package gets in addition to its own.
type PipelineTemplate struct {
	// Mutators change the package's objects, one after the other.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Mutators []FunctionTemplate `json:"mutators,omitempty"`

	// Validators look at the package's objects once all mutators have run.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Validators []FunctionTemplate `json:"validators,omitempty"`
}

// FunctionTemplate is a function whose configuration may depend on the target.
type FunctionTemplate struct {
	Function `json:",inline"`

	// ConfigMapExprs are entries of configMap that depend on the target.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ConfigMapExprs []MapExpr `json:"configMapExprs,omitempty"`
}

// InjectorTemplate is an injector whose object may depend on the target.
//
// +kubebuilder:validation:XValidation:rule="[has(self.name), has(self.nameExpr), has(self.labelSelector)].filter(set, set).size() <= 1",message="only one of name, nameExpr and labelSelector may be set"
type InjectorTemplate struct {
	Injector `json:",inline"`

	// NameExpr is the name of the object in the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	NameExpr string `json:"nameExpr,omitempty"`
}

// BindingTemplate is a binding whose value may depend on the target.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path) || has(self.from.object) || has(self.from.packageObject)",message="path leads into an object: from.object or from.packageObject"
type BindingTemplate struct {
	BindingTarget `json:",inline"`

	// From says where the value is.
	// +required
	From BindingSourceTemplate `json:"from"`
}

// BindingSourceTemplate is where a value is: exactly one of its fields.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type BindingSourceTemplate struct {
	// Object of the cluster.
	// +optional
	Object *BindingObjectTemplate `json:"object,omitempty"`

	// Literal is the value itself: any of JSON's, of at most 16 KiB.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Literal *Literal `json:"literal,omitempty"`

	// LiteralExpr is the value as a text. Where the point takes another type, the binding's type says which.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	LiteralExpr string `json:"literalExpr,omitempty"`

	// PackageContext is a key of the package's context, whose value is a text.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	PackageContext string `json:"packageContext,omitempty"`

	// PackageObject is an object of the package, as it is once its functions have run.
	// +optional
	PackageObject *PackageObject `json:"packageObject,omitempty"`
}

// BindingObjectTemplate is an object of the cluster that may depend on the target.
//
// +kubebuilder:validation:XValidation:rule="[has(self.name), has(self.nameExpr), has(self.labelSelector)].filter(set, set).size() <= 1",message="only one of name, nameExpr and labelSelector may be set"
type BindingObjectTemplate struct {
	BindingObject `json:",inline"`

	// NameExpr is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	NameExpr string `json:"nameExpr,omitempty"`
}
