// Package catalog chooses which release of a module an installation gets, and explains the choice.
// It knows neither clients nor clocks, and of the API no more than its words: the same facts always give the same decision.
package catalog

import (
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

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

// Support is what the module's team says of a release.
type Support struct {
	State   modulesv1.SupportState
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
func (r Release) Claims() bool { return r.Channel != "" && r.Channel != modulesv1.NoChannel }

// State is how far the release is supported at that time.
func (r Release) State(now time.Time) modulesv1.SupportState {
	if r.Support.State == modulesv1.SupportWithdrawn || r.Support.State == modulesv1.SupportDeprecated {
		return r.Support.State
	}
	if !r.Support.Until.IsZero() && !now.Before(r.Support.Until) {
		return modulesv1.SupportDeprecated
	}
	return modulesv1.SupportSupported
}

// Module is the object that says what a module's channels are. It is optional.
type Module struct {
	Name string
	// DefaultChannel is where a request without a selector goes; empty means the latest release.
	DefaultChannel string
	// Channels have unique names. For these the templates' claims have no say.
	Channels []modulesv1.Channel
	// Admits says whether an installation in that namespace may use the module from the system catalogue. It depends on
	// nothing but the namespace. Nil admits every namespace.
	Admits func(namespace string) bool
}

func (m *Module) channel(name string) (channel modulesv1.Channel, listed bool) {
	if m == nil {
		return modulesv1.Channel{}, false
	}
	for _, channel := range m.Channels {
		if channel.Name == name {
			return channel, true
		}
	}
	return modulesv1.Channel{}, false
}
