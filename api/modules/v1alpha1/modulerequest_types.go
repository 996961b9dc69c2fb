package v1alpha1

// PrereleasePolicy says which prereleases a range or 'latest' may choose.
type PrereleasePolicy string

const (
	// PrereleasesExclude leaves all prereleases out. It is meant when nothing is set.
	PrereleasesExclude PrereleasePolicy = "Exclude"
	// PrereleasesInclude lets every prerelease in.
	PrereleasesInclude PrereleasePolicy = "Include"
	// PrereleasesListed lets in those whose first identifier is listed: 'rc' for 1.0.0-rc.1.
	PrereleasesListed PrereleasePolicy = "Listed"
)

// ModuleRequest says which release of which module is wanted. With a name and no more, the module's default channel is
// followed, or else its latest release.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.templateRef)",message="name or templateRef has to be set"
// +kubebuilder:validation:XValidation:rule="[has(self.channel), has(self.version), has(self.range), has(self.latest) && self.latest].filter(x, x).size() <= 1",message="at most one of channel, version, range and latest may be set"
// +kubebuilder:validation:XValidation:rule="!has(self.templateRef) || !(has(self.channel) || has(self.version) || has(self.range) || (has(self.latest) && self.latest))",message="templateRef selects one release already: channel, version, range and latest have no place beside it"
type ModuleRequest struct {
	// Name of the module.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// TemplateRef names a release by its ModuleTemplate, in the namespace that catalog leads to. If name is set as well,
	// the template has to be one of that module.
	// +optional
	TemplateRef *LocalReference `json:"templateRef,omitempty"`

	// Catalog is where releases are looked for: 'Local', this object's namespace; 'System', the operator's; or 'Auto',
	// this object's if it has the module or template, else the operator's. What Auto found is kept until this field
	// changes.
	// +kubebuilder:validation:Enum=Auto;Local;System
	// +kubebuilder:default=Auto
	// +optional
	Catalog Catalog `json:"catalog,omitempty"`

	// Channel to follow, such as 'regular'.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'none'",message="'none' is no channel"
	// +optional
	Channel string `json:"channel,omitempty"`

	// Version to install: SemVer 2.0 in full. Build metadata makes no difference.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
	// +kubebuilder:validation:XValidation:rule="isSemver(self)",message="not a semantic version: its numbers have to fit 64 bits"
	// +optional
	Version string `json:"version,omitempty"`

	// Range of versions, of which the highest is installed: '>=1.4.0 <2.0.0', '~1.4.0', '1.x'. Comparators are joined
	// by a space or comma where all have to hold, and by '||' where one has to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z.+*=!<>~^|, -]+$`
	// +optional
	Range string `json:"range,omitempty"`

	// Latest installs the highest release of all.
	// +optional
	Latest bool `json:"latest,omitempty"`

	// Prereleases says which prereleases range and latest may choose. Those that a channel, version or template names
	// are always meant.
	// +optional
	Prereleases *Prereleases `json:"prereleases,omitempty"`
}

// Prereleases says which prereleases a range or 'latest' may choose.
//
// +kubebuilder:validation:XValidation:rule="(has(self.policy) && self.policy == 'Listed') == (has(self.identifiers) && self.identifiers.size() > 0)",message="identifiers go with policy Listed, and with no other"
type Prereleases struct {
	// Policy is 'Exclude', 'Include', or 'Listed' for those whose first identifier is in identifiers.
	// +kubebuilder:validation:Enum=Exclude;Include;Listed
	// +kubebuilder:default=Exclude
	// +optional
	Policy PrereleasePolicy `json:"policy,omitempty"`

	// Identifiers that a prerelease may begin with: 'rc' lets in 1.0.0-rc.1.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z-]+$`
	// +optional
	Identifiers []string `json:"identifiers,omitempty"`
}
