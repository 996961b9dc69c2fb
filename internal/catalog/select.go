package catalog

import (
	"cmp"
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
		r.narrow("template", r.entry.releases, candidates, r.selection.Value, func(*release) string { return "is of another template" })
	case ByChannel:
		pointed, hold := r.entry.pointer(r.selection.Value)
		if hold != nil {
			r.narrow("channel", r.entry.releases, nil, r.selection.Value, r.offChannel)
			return nil, hold
		}
		return r.unsuspended(pointed)
	case ByVersion:
		candidates = keep(r.entry.offered(), func(c *release) bool { return c.version.Compare(r.version) == 0 })
		r.narrow("version", r.entry.releases, candidates, r.selection.Value, func(c *release) string {
			return cmp.Or(c.notOffered(), "is another version")
		})
		if len(candidates) == 0 {
			return nil, r.entry.versionNotFound(r.selection.Value)
		}
	default:
		candidates = r.entry.offered()
		r.narrow("offered", r.entry.releases, candidates, "", (*release).notOffered)
		if len(candidates) == 0 {
			return nil, &Hold{Reason: modulesv1.NoMatchingReleaseReason, Message: fmt.Sprintf(
				"Module %s has no release with a version that is offered outside of channels", r.entry.name)}
		}
	}
	return candidates, nil
}

// notOffered says why not everyone may choose the release by version; empty where everyone may.
func (r *release) notOffered() string {
	switch {
	case !r.known:
		return "has no version that is a semantic one"
	case r.Claims():
		return "is in channel " + r.Channel + " only"
	}
	return ""
}

// offChannel says why the channel that is followed does not lead to a release.
func (r *resolution) offChannel(c *release) string {
	channel, listed := r.entry.object.channel(r.selection.Value)
	switch {
	case listed:
		return fmt.Sprintf("is not the version %q, to which channel %s points", channel.Version, channel.Name)
	case c.Channel == r.selection.Value:
		return "claims channel " + c.Channel + " beside others, or is being deleted"
	}
	return "is not in channel " + r.selection.Value
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
	r.narrow("channel", r.entry.releases, pointed, leads, r.offChannel)
	if !channel.Suspended {
		return pointed, nil
	}
	message := fmt.Sprintf("Channel %s of module %s is suspended%s", channel.Name, r.entry.name, because(channel.Message))
	stay := keep(pointed, r.isCurrent)
	r.narrow("unsuspended", pointed, stay, "", func(*release) string { return "is what a suspended channel points to" })
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
