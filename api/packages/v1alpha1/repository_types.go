package v1alpha1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RepositoryKind is the kind of a Repository as it stands in manifests.
	RepositoryKind = "Repository"

	// DefaultBranch holds what is published where a Repository sets no spec.branch.
	DefaultBranch = "main"

	// DefaultRepositoryInterval is the time between two rounds of a Repository that sets no spec.interval.
	DefaultRepositoryInterval = 5 * time.Minute

	// DefaultRepositoryTimeout bounds the work done upstream in one round of a Repository that sets no spec.timeout.
	DefaultRepositoryTimeout = 2 * time.Minute
)

// RepositorySpec says where packages are, and how changes to them are written.
//
// +kubebuilder:validation:XValidation:rule="self.gitRepositoryRef.name == oldSelf.gitRepositoryRef.name",message="gitRepositoryRef is immutable",fieldPath=.gitRepositoryRef
// +kubebuilder:validation:XValidation:rule=`(has(self.branch) ? self.branch : "") == (has(oldSelf.branch) ? oldSelf.branch : "")`,message="branch is immutable",fieldPath=.branch
// +kubebuilder:validation:XValidation:rule=`(has(self.directory) ? self.directory : "") == (has(oldSelf.directory) ? oldSelf.directory : "")`,message="directory is immutable",fieldPath=.directory
type RepositorySpec struct {
	// GitRepositoryRef names the GitRepository, in the same namespace, whose URL, credentials and trust are used. What it
	// selects does not matter here. It is immutable.
	// +required
	GitRepositoryRef LocalReference `json:"gitRepositoryRef"`

	// Branch that holds what is published. It is immutable.
	// +kubebuilder:default=main
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\]+$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..') && !self.contains('//') && !self.contains('/.') && !self.contains('@{') && !self.startsWith('/') && !self.startsWith('.') && !self.startsWith('-') && !self.endsWith('/') && !self.endsWith('.') && !self.endsWith('.lock')",message="Git takes no such name for a branch"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(drafts|proposed|deletionProposed)(/|$)')",message="branches of that name are for changes that are not published"
	// +optional
	Branch string `json:"branch,omitempty"`

	// Directory is the folder that the packages are in. Without it, the whole branch is looked through. It is immutable.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^([^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*(/[^\x00-\x20\x7f~^:?*\[\\/.-][^\x00-\x20\x7f~^:?*\[\\/]*)*)?$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..') && !self.contains('@{') && !self.contains('./') && !self.contains('.lock/') && !self.endsWith('.') && !self.endsWith('.lock')",message="Git takes no such name for a branch that a change is on"
	// +optional
	Directory string `json:"directory,omitempty"`

	// Deployment says that what is published here is deployed from here, and is not a blueprint for others. The context of
	// each package that a variant makes here then says what it is called, with 'name', and where it is below the root of the
	// Git repository, with 'package-path'. An edit makes changes of all of them.
	// +optional
	Deployment bool `json:"deployment,omitempty"`

	// PushSecretRef names the Secret with the credentials for writing, in the form that a GitRepository takes. Without it,
	// those of the GitRepository are used.
	// +optional
	PushSecretRef *LocalReference `json:"pushSecretRef,omitempty"`

	// Commit says who commits are by, and what they are signed with.
	// +optional
	Commit *CommitSpec `json:"commit,omitempty"`

	// History bounds what Git keeps of what was published. Without it, no tag is ever removed.
	// +optional
	History *HistorySpec `json:"history,omitempty"`

	// Interval at which the repository is asked for what others have changed. 5m when nothing is set. Some jitter is
	// added, to spread the load.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Timeout bounds the work done upstream in one round. 2m when nothing is set. The operator may have set a ceiling, to
	// which it is cut.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="has to be 1s at least"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Suspend stops all work for this repository until it is taken back: nothing is read or written. Its packages'
	// variants wait.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// CommitSpec says who commits are by, and what they are signed with.
type CommitSpec struct {
	// Author of the commits. Without it, the controller is.
	// +optional
	Author *Identity `json:"author,omitempty"`

	// Committer of the commits. Without it, the author is.
	// +optional
	Committer *Identity `json:"committer,omitempty"`

	// SigningKeySecretRef names the Secret with the key that commits are signed with: 'git.asc', an OpenPGP private key, or
	// 'identity', an SSH one, and 'passphrase' where the key has one. Without it, commits are not signed.
	// +optional
	SigningKeySecretRef *LocalReference `json:"signingKeySecretRef,omitempty"`
}

// HistorySpec says what Git keeps of what was published, and whether it is listed.
type HistorySpec struct {
	// Revisions is how many published revisions of each package keep their tags, the newest ones. Tags of older ones are
	// removed from Git for good, unless somebody needs them; their commits stay on the branch. Without it, all tags stay.
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Revisions *int32 `json:"revisions,omitempty"`

	// Index has each commit that publishes or removes a package carry a file '.sluice/index' in the directory, with a line for each
	// package on the branch: its path, its newest revision, and its tags.
	// +optional
	Index bool `json:"index,omitempty"`
}

// Identity is a person, or a program, as Git writes one down.
type Identity struct {
	// Name as it stands in the commit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f<>]*[^\x00-\x20\x7f<>][^\x00-\x1f\x7f<>]*$`
	// +required
	Name string `json:"name"`

	// Email address as it stands in the commit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f<>]+$`
	// +required
	Email string `json:"email"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// RepositoryStatus is what was last seen of a Repository. An interval in which nothing moves writes nothing.
type RepositoryStatus struct {
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

	// URL of the Git repository, without credentials.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// Head is the commit that the branch was seen at.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Head string `json:"head,omitempty"`

	// Packages is the number of packages on the branch.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Packages int32 `json:"packages,omitempty"`

	// Revisions is the number of published revisions of these, and of packages that are gone.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Revisions int32 `json:"revisions,omitempty"`

	// OpenChanges is the number of drafts, and of proposals to publish or to delete.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	OpenChanges int32 `json:"openChanges,omitempty"`

	// LastSyncTime is when the repository was last read with something to write down: it differed from what stood here, the
	// spec was edited, somebody asked for it, or it could not be read before. Later rounds have found nothing new.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[^a-z]+$`
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// Repository is a branch and folder of a Git repository that holds packages.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pkgrepo,categories={sluice,sluice-packages}
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:printcolumn:name="Branch",type=string,JSONPath=`.spec.branch`
// +kubebuilder:printcolumn:name="Directory",type=string,JSONPath=`.spec.directory`
// +kubebuilder:printcolumn:name="Deployment",type=boolean,JSONPath=`.spec.deployment`
// +kubebuilder:printcolumn:name="Packages",type=integer,JSONPath=`.status.packages`
// +kubebuilder:printcolumn:name="Changes",type=integer,JSONPath=`.status.openChanges`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,priority=1
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Repository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RepositorySpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status RepositoryStatus `json:"status,omitempty"`

	// Undecodable says what in the spec could not be decoded; the spec is empty then. See UnmarshalJSON.
	Undecodable string `json:"-"`

	// UnreadableStatus says that the status could not be decoded; it is empty then.
	UnreadableStatus bool `json:"-"`
}

// RepositoryList is a list of Repositories.
//
// +kubebuilder:object:root=true
type RepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Repository `json:"items"`
}
