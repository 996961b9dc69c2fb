package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PackageVariantKind is the kind of a PackageVariant as it stands in manifests.
	PackageVariantKind = "PackageVariant"

	// DefaultVariantInterval is the time between two rounds of a PackageVariant that sets no spec.interval.
	DefaultVariantInterval = 10 * time.Minute

	// DefaultVariantTimeout bounds one round of a PackageVariant that sets no spec.timeout.
	DefaultVariantTimeout = time.Minute
)

// PackageVariantSpec says which package is cloned to where, what is made of it there, and who has to agree.
type PackageVariantSpec struct {
	// Upstream says which package is cloned, and which revisions of it are followed.
	// +required
	Upstream Upstream `json:"upstream"`

	// Downstream says where the package is kept.
	// +required
	Downstream Downstream `json:"downstream"`

	// Labels are put on the package. What leaves this field leaves the package.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('packages.sluice.dev/'))",message="labels of packages.sluice.dev are the controller's"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are put on the package. What leaves this field leaves the package.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('packages.sluice.dev/'))",message="annotations of packages.sluice.dev are the controller's"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// PackageContext changes the package's context: the ConfigMap 'kptfile.kpt.dev' in 'package-context.yaml'.
	// +optional
	PackageContext *PackageContext `json:"packageContext,omitempty"`

	// Pipeline has functions that the package gets in addition to its own. They run first, in their order.
	// +optional
	Pipeline *Pipeline `json:"pipeline,omitempty"`

	// Injectors say which objects of the cluster fill the package's injection points. The first that fits a point, and
	// has an object for it, does. Without any, it is the object of the point's kind that is
	// called as the downstream Repository.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Injectors []Injector `json:"injectors,omitempty"`

	// Bindings say what the package's binding points hold.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Bindings []Binding `json:"bindings,omitempty"`

	// Namespace that the package's objects go to. The package gets the Namespace object, and its objects are set to it.
	// Without it, they are left as they are.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// AdoptionPolicy is 'adoptNone', where a package that is there already and is not this variant's is left alone and
	// reported, or 'adoptExisting', where it is taken over unless it is another variant's.
	// +kubebuilder:validation:Enum=adoptNone;adoptExisting
	// +kubebuilder:default=adoptNone
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// DeletionPolicy decides about the package when this object is deleted, or its downstream changes: 'delete' removes the
	// draft, unless people have committed to it, and proposes the deletion of the published package; 'orphan' leaves
	// everything in place.
	// +kubebuilder:validation:Enum=delete;orphan
	// +kubebuilder:default=delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Approval says who approves the changes that are made here.
	// +optional
	Approval *Approval `json:"approval,omitempty"`

	// ConflictPolicy decides which value the draft gets where upstream and people changed the same value: 'Local' takes people's
	// value, 'Upstream' takes upstream's, and 'Fail' writes nothing until the conflict is resolved. Sluice reports every conflict.
	// To publish a change with conflicts, an approver must name their digest.
	// +kubebuilder:validation:Enum=Upstream;Local;Fail
	// +kubebuilder:default=Local
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// ServiceAccountName names the ServiceAccount in the same namespace as which objects are read for injection and bindings. Without
	// it, the operator's settings decide.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// DryRun works out what would be changed, shows it in status.preview, and pushes nothing.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Suspend stops all work for this object until it is taken back; what is in Git stays as it is.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Interval at which the variant is looked at even when nothing was heard of a change. 10m when nothing is set. Some
	// jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Timeout bounds one round: reading what is injected, merging and rendering. 1m when nothing is set. The operator may
	// have set a ceiling, to which it is cut.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Upstream says which package is cloned, and which revisions of it are followed.
//
// +kubebuilder:validation:XValidation:rule="[has(self.revision), has(self.tag), has(self.branch), has(self.range)].filter(set, set).size() <= 1",message="at most one of revision, tag, branch and range may be set"
// +kubebuilder:validation:XValidation:rule="!has(self.commit) || has(self.revision) || has(self.tag) || has(self.branch)",message="commit needs one of revision, tag and branch, as what the commit is known by"
type Upstream struct {
	// Repo is the name of the Repository, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Repo string `json:"repo"`

	// Package is the package's path below the Repository's directory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*(/[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*)*$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..') && !self.contains('@{') && !self.contains('./') && !self.contains('.lock/') && !self.endsWith('.') && !self.endsWith('.lock')",message="Git takes no such name for a branch that a change is on"
	// +required
	Package string `json:"package"`

	// Revision is the number of the published revision to take: 3 is the one that Git knows as 'v3'. Where none of
	// revision, tag, branch and range is set, the newest published revision is followed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// Tag to take: the package's own, '<package>/<tag>' in Git, or else the repository's. A tag that moves is followed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\]+$`
	// +optional
	Tag string `json:"tag,omitempty"`

	// Branch whose newest commit is followed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\]+$`
	// +optional
	Branch string `json:"branch,omitempty"`

	// Range of versions, of which the highest tag is followed: '>=1.4.0 <2.0.0', '~1.4.0', '1.x'. Comparators are joined
	// by a space or comma where all have to hold, and by '||' where one has to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.+*=!<>~^|, -]+$`
	// +optional
	Range string `json:"range,omitempty"`

	// Commit that is taken of the revision, tag or branch, wherever that has moved: nothing is followed. A set with a
	// rollout holds its variants there until their wave begins.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +optional
	Commit string `json:"commit,omitempty"`
}

// Downstream says where a variant of the package is kept.
type Downstream struct {
	// Repo is the name of the Repository, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Repo string `json:"repo"`

	// Package is the package's path below the Repository's directory. Without it, the path is that of upstream.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*(/[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*)*$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..') && !self.contains('@{') && !self.contains('./') && !self.contains('.lock/') && !self.endsWith('.') && !self.endsWith('.lock')",message="Git takes no such name for a branch that a change is on"
	// +optional
	Package string `json:"package,omitempty"`
}

// PackageVariant keeps a package of one repository alive in another: cloned, adapted, up to date with upstream, and
// taken from draft to published.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pkgvar,categories={sluice,sluice-packages}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Upstream",type=string,JSONPath=`.spec.upstream.package`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.upstream.revision`
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.downstream.repo`
// +kubebuilder:printcolumn:name="Package",type=string,JSONPath=`.status.downstream.package`
// +kubebuilder:printcolumn:name="Change",type=string,JSONPath=`.status.change.lifecycle`
// +kubebuilder:printcolumn:name="Conflicts",type=integer,JSONPath=`.status.change.conflictCount`
// +kubebuilder:printcolumn:name="Published",type=string,JSONPath=`.status.published.revision`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Approval",type=string,JSONPath=`.spec.approval.policy`,priority=1
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.status.change.workspace`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PackageVariant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PackageVariantSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status PackageVariantStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// PackageVariantList is a list of PackageVariants.
//
// +kubebuilder:object:root=true
type PackageVariantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageVariant `json:"items"`
}
