package catalog

import (
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// Request is what an installation asks for.
type Request struct {
	// Namespace is the installation's own, by which a module of the system catalogue admits it.
	Namespace string
	// Name is the module; Template the name of one template. At least one is given, and both must agree.
	Name     string
	Template string
	// Catalog is where to look; empty means Auto.
	Catalog modulesv1.Catalog
	// At most one of Channel, Version, Range and Latest is given, and none beside Template. Without any, the module's
	// default channel is meant, and the latest release where there is none.
	Channel string
	Version string
	Range   string
	Latest  bool
	// Prereleases has a say for Range and Latest alone.
	Prereleases modulesv1.Prereleases
	// Upgrade is the consent that the request gives to changes.
	Upgrade modulesv1.UpgradePolicy
	// Explain asks for whom each rule left out, which takes time and room for each release.
	Explain bool
}

// Installed is what the installation is known to run. The zero value is a first install.
type Installed struct {
	// Module and Catalog are what the earlier choice was made from. Record them from a Decision that has a Target, and
	// forget the catalogue when the request asks for another one than it did then.
	Module  string
	Catalog modulesv1.Catalog
	// Current is what was applied in full last, as it is recorded, so that it outlives its template; nil before anything
	// was. Previous is what was applied before it.
	Current  *modulesv1.Release
	Previous *modulesv1.Release
	// Attempted is what was begun after Current and not brought to an end; nil where nothing was. Nobody knows how much of
	// it was applied, so that it counts as having run: half a release may have changed the users' data already.
	Attempted *modulesv1.Release
	// Plan is what the caller has computed for the pending change, where it has.
	Plan *Plan
}

// Plan is the change to one release, spelt out and digested.
type Plan struct {
	// Version and Content are the release's version and digest.
	Version string
	Content string
	// Digest is the digest of the plan itself, which an approval names.
	Digest string
}

// Selector is the way by which a request selects.
type Selector string

const (
	// ByTemplate selects one template by its name.
	ByTemplate Selector = "template"
	// ByChannel selects what a channel points to.
	ByChannel Selector = "channel"
	// ByVersion selects one version.
	ByVersion Selector = "version"
	// ByRange selects the highest version in a range.
	ByRange Selector = "range"
	// ByLatest selects the highest version.
	ByLatest Selector = "latest"
	// ByDefault leaves the way to the module.
	ByDefault Selector = "default"
)

// Selection is a way to select and its value, where it has one.
type Selection struct {
	By    Selector
	Value string
}

// String is the selection as status shows it: channel/stable, latest.
func (s Selection) String() string {
	if s.Value == "" {
		return string(s.By)
	}
	return string(s.By) + "/" + s.Value
}

// followsReleases says whether the highest release is meant, so that a new one may change the answer.
func (s Selection) followsReleases() bool { return s.By == ByRange || s.By == ByLatest }

// namesRelease says whether the request itself names the release, so that it consents to that very one.
func (s Selection) namesRelease() bool { return s.By == ByVersion || s.By == ByTemplate }

// selections are the selections that the request makes: one when it is well formed.
func (r Request) selections() []Selection {
	all := []Selection{{ByTemplate, r.Template}, {ByChannel, r.Channel}, {ByVersion, r.Version}, {ByRange, r.Range}}
	given := slices.DeleteFunc(all, func(s Selection) bool { return s.Value == "" })
	if r.Latest {
		given = append(given, Selection{By: ByLatest})
	}
	if len(given) == 0 {
		given = append(given, Selection{By: ByDefault})
	}
	return given
}
