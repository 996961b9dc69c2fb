package v1alpha1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PackageVariantSetKind is the kind of a PackageVariantSet as it stands in manifests.
	PackageVariantSetKind = "PackageVariantSet"

	// DefaultSetInterval is the time between two rounds of a PackageVariantSet that sets no spec.interval.
	DefaultSetInterval = 10 * time.Minute

	// DefaultSetTimeout bounds one round of a PackageVariantSet that sets no spec.timeout.
	DefaultSetTimeout = time.Minute

	// DefaultGuardPercent is how many of a set's variants have to stay, in percent, where spec.deletionGuard says nothing.
	DefaultGuardPercent = 50

	// DefaultGracePeriod is the default of spec.deletionGuard.gracePeriod.
	DefaultGracePeriod = 10 * time.Minute
)

// PackageVariantSetSpec says which targets get a variant of a package, and what is special about each.
type PackageVariantSetSpec struct {
	// Upstream says which package is cloned, and which revisions of it are followed.
	// +required
	Upstream Upstream `json:"upstream"`

	// Targets say where variants go. No two of them may lead to the same package of a Repository.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +required
	Targets []Target `json:"targets"`

	// Rollout has new revisions reach the targets in waves. Without it, all variants follow upstream at once, each on its own.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// DeletionGuard keeps a mistake from taking many variants away.
	// +optional
	DeletionGuard *DeletionGuard `json:"deletionGuard,omitempty"`

	// ServiceAccountName names the ServiceAccount in the same namespace as which objects are read that an objectSelector
	// selects. Without it, the operator's settings decide.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// DryRun leaves the variants as they are, and makes none. What would become of them is in status.preview.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// Suspend stops all work for this object until it is taken back; its variants stay, and work on.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Interval at which the set is looked at even when nothing was heard of a change. 10m when nothing is set. Some
	// jitter is added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Timeout bounds one round. 1m when nothing is set. The operator may have set a ceiling, to which it is cut.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Target says where variants go, and what is made of the template there.
//
// +kubebuilder:validation:XValidation:rule="[has(self.repositories), has(self.repositorySelector), has(self.objectSelector)].filter(set, set).size() == 1",message="exactly one of repositories, repositorySelector and objectSelector has to be set"
type Target struct {
	// Repositories are Repositories by their names. Each of their packages is a target.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Repositories []RepositoryTarget `json:"repositories,omitempty"`

	// RepositorySelector selects Repositories of the namespace by their labels. Each is a target.
	// +optional
	RepositorySelector *metav1.LabelSelector `json:"repositorySelector,omitempty"`

	// ObjectSelector selects objects of the namespace, or of none where their kind has none. Each is a target.
	// +optional
	ObjectSelector *ObjectSelector `json:"objectSelector,omitempty"`

	// Template says what the variants of these targets are.
	// +optional
	Template *VariantTemplate `json:"template,omitempty"`
}

// RepositoryTarget is a Repository, and the packages in it that are targets.
type RepositoryTarget struct {
	// Name of the Repository, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// PackageNames are the paths of the packages. Without any, there is one, whose path is that of upstream.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	PackageNames []string `json:"packageNames,omitempty"`
}

// ObjectSelector selects objects by what they are, and their name or labels.
type ObjectSelector struct {
	// APIVersion of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Name of the one object that is meant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// DeletionGuard keeps a mistake from taking many variants away.
type DeletionGuard struct {
	// MinPercent of the accepted targets must keep their variants. Sluice counts all targets that have gone since a person last
	// accepted the targets, also those that went one by one. If more have gone, it deletes no variant until a person acknowledges
	// the deletion. The default is 50; 0 turns the guard off.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=50
	// +optional
	MinPercent *int32 `json:"minPercent,omitempty"`

	// GracePeriod is how long a variant stays after its target has disappeared or no longer matches. A target that comes back in
	// time keeps its variant. The default is 10m; 0s deletes the variant at once. A Repository that an edit of this spec
	// deselects has no grace period.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`
}

// DeletionGuardStatus is the record of the deletion guard. Sluice writes it before it deletes a variant.
type DeletionGuardStatus struct {
	// Generation of the spec with which a person last accepted the targets. Without it, earlier deletions are unknown, and Sluice
	// deletes no variant.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Targets is the number of accepted targets: those that a person accepted, and those added since.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Targets int32 `json:"targets"`

	// Gone is the number of accepted targets whose variants were deleted since.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Gone int32 `json:"gone"`

	// Digest identifies the variants that the closed guard protects. To acknowledge their deletion, set the annotation
	// 'packages.sluice.dev/allow-deletion' to it.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Digest string `json:"digest,omitempty"`

	// Since is the time at which the guard closed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Variants names the first variants that the closed guard protects.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Variants []string `json:"variants,omitempty"`

	// Acknowledged is the digest of the deletion that a person acknowledged last. It cannot be used again.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Acknowledged string `json:"acknowledged,omitempty"`
}

// PackageVariantSetStatus is what was last seen of a PackageVariantSet.
type PackageVariantSetStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak about; -1 before the first one.
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions holds the state of the object. Its types and reasons are documented with their constants.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Targets is how many there are.
	// +optional
	Targets int32 `json:"targets"`

	// Variants is how many there are, those that are to go among them.
	// +optional
	Variants int32 `json:"variants"`

	// ReadyVariants is how many of them are ready.
	// +optional
	ReadyVariants int32 `json:"readyVariants"`

	// OpenVariants is how many of them have an open change.
	// +optional
	OpenVariants int32 `json:"openVariants"`

	// Unwanted is the number of variants without a target that stay, because of the guard or for the grace period.
	// +optional
	Unwanted int32 `json:"unwanted,omitempty"`

	// DeletionGuard is the record of the deletion guard.
	// +optional
	DeletionGuard *DeletionGuardStatus `json:"deletionGuard,omitempty"`

	// ProblemCount is how many targets have a problem.
	// +optional
	ProblemCount int32 `json:"problemCount,omitempty"`

	// Problems are the first of them, in the order of the targets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Problems []TargetProblem `json:"problems,omitempty"`

	// Rollout is how far the newest revision is.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// Preview is what would become of the packages: with dryRun, or of a revision that waits until its preview is approved.
	// +optional
	Preview *SetPreview `json:"preview,omitempty"`

	// Artifact is the whole of the preview, of each target a line of JSON.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// TargetProblem says what is wrong with a target.
type TargetProblem struct {
	// Target that it is: its place in the spec, and the object or Repository that it selects.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Target string `json:"target"`

	// Message says what is wrong.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Message string `json:"message"`
}

// PackageVariantSet makes a PackageVariant for each of its targets, and keeps that true as targets come and go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pkgvarset,categories={sluice,sluice-packages}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Upstream",type=string,JSONPath=`.spec.upstream.package`
// +kubebuilder:printcolumn:name="Targets",type=integer,JSONPath=`.status.targets`
// +kubebuilder:printcolumn:name="Variants",type=integer,JSONPath=`.status.variants`
// +kubebuilder:printcolumn:name="Ready Variants",type=integer,JSONPath=`.status.readyVariants`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PackageVariantSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PackageVariantSetSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status PackageVariantSetStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// PackageVariantSetList is a list of PackageVariantSets.
//
// +kubebuilder:object:root=true
type PackageVariantSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageVariantSet `json:"items"`
}
