package catalog

import (
	"fmt"
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// selected are the releases that the request's selector leads to.
func (r *resolution) selected() ([]*release, *Hold) {
	if r.selection.By == ByDefault {
		r.selection = r.entry.byDefault()
	}
	var candidates []*release
	switch r.selection.By {
	case ByTemplate:
		candidates = []*release{r.contents.templates[r.selection.Value]}
	case ByChannel:
		pointed, hold := r.entry.pointer(r.selection.Value)
		if hold != nil {
			r.note("channel", 0, r.selection.Value)
			return nil, hold
		}
		return r.unsuspended(pointed)
	case ByVersion:
		candidates = keep(r.entry.offered(), func(c *release) bool { return c.version.Compare(r.version) == 0 })
		if len(candidates) == 0 {
			r.note("version", 0, r.selection.Value)
			return nil, r.entry.versionNotFound(r.selection.Value)
		}
	default:
		candidates = r.entry.offered()
		if len(candidates) == 0 {
			r.note("offered", 0, "")
			return nil, &Hold{Reason: modulesv1.NoMatchingReleaseReason, Message: fmt.Sprintf(
				"Module %s has no release with a version that is offered outside of channels", r.entry.name)}
		}
		r.note("offered", len(candidates), "")
		return candidates, nil
	}
	r.note(string(r.selection.By), len(candidates), r.selection.Value)
	return candidates, nil
}

// byDefault is how a request selects that does not say.
func (e *entry) byDefault() Selection {
	if e.object != nil && e.object.DefaultChannel != "" {
		return Selection{By: ByChannel, Value: e.object.DefaultChannel}
	}
	return Selection{By: ByLatest}
}

// pointer is where the channel leads: by the module's word where it lists the channel, else by the one template that
// claims it. There are several releases only where templates state the same version.
func (e *entry) pointer(name string) ([]*release, *Hold) {
	if channel, listed := e.object.channel(name); listed {
		pointed := e.at(channel.Version)
		if len(pointed) == 0 {
			return nil, &Hold{Reason: modulesv1.ChannelTargetMissingReason, Message: fmt.Sprintf(
				"Channel %s of module %s points to version %q, which no template has", name, e.name, channel.Version)}
		}
		return pointed, nil
	}
	switch claimants := e.claims[name]; len(claimants) {
	case 0:
		return nil, &Hold{Reason: modulesv1.ChannelNotFoundReason, Message: fmt.Sprintf("Module %s has no channel %s%s", e.name, name, e.channelHint())}
	case 1:
		return claimants, nil
	default:
		return nil, &Hold{Reason: modulesv1.ChannelConflictReason, Message: fmt.Sprintf(
			"Channel %s of module %s is claimed by %s; leave one claim, or list the channel in the module", name, e.name, list(names(claimants)))}
	}
}

func (e *entry) channelHint() string {
	if channels := e.channels(); len(channels) > 0 {
		return "; it has " + list(channels)
	}
	return "; it has none"
}

// unsuspended lets through what a channel points to, unless the channel is stopped: then only who is there already
// stays there.
func (r *resolution) unsuspended(pointed []*release) ([]*release, *Hold) {
	channel, _ := r.entry.object.channel(r.selection.Value)
	leads := r.selection.Value
	if channel.Version != "" {
		leads += " points to " + channel.Version
	}
	r.note("channel", len(pointed), leads)
	if !channel.Suspended {
		return pointed, nil
	}
	message := fmt.Sprintf("Channel %s of module %s is suspended%s", channel.Name, r.entry.name, because(channel.Message))
	stay := keep(pointed, r.isCurrent)
	r.note("unsuspended", len(stay), "")
	if len(stay) == 0 {
		return nil, r.holdOne(modulesv1.ChannelSuspendedReason, message, pointed)
	}
	r.warnings = append(r.warnings, Finding{modulesv1.ChannelSuspendedReason, message})
	return stay, nil
}

// versionNotFound says where else the version is to be had.
func (e *entry) versionNotFound(version string) *Hold {
	message := fmt.Sprintf("Module %s does not offer version %s", e.name, version)
	var channels []string
	for _, c := range e.at(version) {
		channels = append(channels, c.Channel)
	}
	if len(channels) > 0 {
		slices.Sort(channels)
		message += " to everyone, only through channel " + list(slices.Compact(channels))
	}
	return &Hold{Reason: modulesv1.VersionNotFoundReason, Message: message}
}

// holdOne holds at the release that was about to be chosen. Whom the module does not admit has no candidate: that would
// be fetched and kept for them.
func (r *resolution) holdOne(reason string, message string, from []*release) *Hold {
	if !r.admits(r.catalog, r.module) {
		return &Hold{Reason: reason, Message: message}
	}
	stated := preferred(from, r.now, r.installed.Current).Release
	return &Hold{Reason: reason, Message: message, Candidate: &stated}
}

func keep(releases []*release, wanted func(*release) bool) []*release {
	return slices.DeleteFunc(slices.Clone(releases), func(r *release) bool { return !wanted(r) })
}
