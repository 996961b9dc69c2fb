package catalog

import (
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// ChannelStatus is where a channel leads, whoever asks.
type ChannelStatus struct {
	// Channel is what the module lists. For a claimed channel, it has the name, and the version of the claiming release.
	modulesv1.Channel
	// Listed says that the module lists the channel.
	Listed bool
	// Release is what new installations get, were the channel not suspended; nil when nothing.
	Release *Release
	// Ready says that the release's artifact is there.
	Ready bool
	// Reason and Detail say why there is no release.
	Reason string
	Detail string
}

// Channels are the module's channels, listed and claimed, by name. A pointer that leads nowhere shows here.
func (c *Contents) Channels(module string, now time.Time) []ChannelStatus {
	entry := c.modules[module]
	if entry == nil {
		return nil
	}
	var channels []ChannelStatus
	for _, name := range entry.channels() {
		channel, listed := entry.object.channel(name)
		channel.Name = name
		status := ChannelStatus{Channel: channel, Listed: listed}
		pointed, hold := entry.pointer(name)
		if hold == nil {
			anyone := &resolution{now: now, contents: c, entry: entry, selection: Selection{By: ByChannel, Value: name}}
			pointed, hold = anyone.filter(pointed)
		}
		if hold != nil {
			status.Reason, status.Detail = hold.Reason, hold.Message
		} else {
			release := preferred(pointed, now, nil).Release
			status.Release, status.Ready = &release, release.Readiness == Ready
			if !listed {
				status.Version = release.Version
			}
		}
		channels = append(channels, status)
	}
	return channels
}
