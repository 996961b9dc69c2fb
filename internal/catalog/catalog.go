// Package catalog chooses which release of a module an installation gets, and explains the choice.
// It knows neither clients nor clocks nor Kubernetes: the same facts always give the same decision.
package catalog

import "time"

// Catalog names one of the two catalogues that an installation can choose from.
type Catalog string

const (
	// Auto is the catalogue that was chosen before, else the local one where it has the module, else the system's.
	Auto Catalog = "Auto"
	// Local is the catalogue in the installation's own namespace.
	Local Catalog = "Local"
	// System is the catalogue in the namespace that the operator set aside for everyone.
	System Catalog = "System"
)

// NoChannel is the claim that claims nothing, for templates in which a channel has to be written.
const NoChannel = "none"

// Readiness says whether a release can be chosen.
type Readiness string

const (
	// Ready means that the release's artifact is there.
	Ready Readiness = "Ready"
	// Idle means that nothing wanted the release so far, so that nothing was fetched. It can be chosen like a ready one.
	// A release whose fetch failed is NotReady and not Idle, even when its source is gone: else it would be chosen,
	// fail and be given up in turn for ever.
	Idle Readiness = "Idle"
	// NotReady means that the release cannot be had; so does the empty value.
	NotReady Readiness = "NotReady"
)

// State is how far a release is supported.
type State string

const (
	// Supported releases are preferred. The empty value means the same.
	Supported State = "Supported"
	// Deprecated releases are chosen, with a warning, where nothing supported is left.
	Deprecated State = "Deprecated"
	// Withdrawn releases are chosen no more. Where one is installed, it stays.
	Withdrawn State = "Withdrawn"
)

// Support is what the module's team says of a release.
type Support struct {
	State   State
	Message string
	// Until is when support ends: a supported release counts as deprecated from then on. Zero means no end.
	Until time.Time
	// ReplacedBy is the version to move to.
	ReplacedBy string
}

// Release is one template as the index sees it: one version of a module, one claim to a channel, or both.
type Release struct {
	// Template is the name of the object, unique in its namespace.
	Template string
	// Module is the name of the module; empty when the template does not say, which leaves it out of every choice.
	Module string
	// Version is a strict semantic version. Empty, or anything else, is an unknown version.
	Version string
	// Stated is what the template says instead of a version, where it has none. It has no say in anything but a message.
	Stated string
	// Channel is the channel that the template claims; empty or NoChannel for none. A release in a channel is offered
	// through channels and by its template's name only; by version, range and latest it is offered by a template without
	// a channel.
	Channel string
	// Digest identifies the content, together with the folder inside it that is used; equal exactly for equal content.
	// It is known before anything is fetched where the template pins its artifact, and empty where it is not known.
	Digest string
	// Readiness says whether the release can be chosen; Message says why not.
	Readiness Readiness
	Message   string
	Support   Support
	// Since is when the template first stated this version: its creation, or the edit that raised the version. The older
	// of two templates with one version and different content is in its right.
	Since time.Time
	// Deleting says that the object is on its way out: it claims nothing and is chosen no more, but where it is
	// installed, it stays.
	Deleting bool
}

// Claims says whether the template puts the release into a channel.
func (r Release) Claims() bool { return r.Channel != "" && r.Channel != NoChannel }

// state is how far the release is supported at that time.
func (r Release) state(now time.Time) State {
	if r.Support.State == Withdrawn || r.Support.State == Deprecated {
		return r.Support.State
	}
	if !r.Support.Until.IsZero() && !now.Before(r.Support.Until) {
		return Deprecated
	}
	return Supported
}

// Module is the object that says what a module's channels are. It is optional.
type Module struct {
	Name string
	// DefaultChannel is where a request without a selector goes; empty means the latest release.
	DefaultChannel string
	// Channels have unique names. For these the templates' claims have no say.
	Channels []Channel
	// Admits says whether an installation in that namespace may use the module from the system catalogue. It depends on
	// nothing but the namespace. Nil admits every namespace.
	Admits func(namespace string) bool
}

// Channel points to one version.
type Channel struct {
	Name    string
	Version string
	// Suspended keeps everyone in the channel where they are and lets nobody new in; Message says why.
	Suspended bool
	Message   string
	// OneWay channels are left with consent only.
	OneWay bool
}

func (m *Module) channel(name string) (channel Channel, listed bool) {
	if m == nil {
		return Channel{}, false
	}
	for _, channel := range m.Channels {
		if channel.Name == name {
			return channel, true
		}
	}
	return Channel{}, false
}
