package modules

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/status"
)

// How much the status of a module lists. The schema has the same bounds.
const (
	maxChannels        = 256
	maxReleases        = 100
	maxReleaseChannels = 64
)

// Report implements kernel.Kind.
func (k *pointers) Report(obj *modulesv1.Module, l lookup, _ error) kernel.Report {
	if !l.looked {
		return kernel.Report{Facts: k.Table().Stated(obj)}
	}
	s := &obj.Status
	s.Installations = count(l.counts.Installations)
	s.Channels = nil
	for _, channel := range l.channels[:min(len(l.channels), maxChannels)] {
		s.Channels = append(s.Channels, l.channelStatus(channel))
	}
	s.Latest = nil
	if l.latest != nil {
		s.Latest = &modulesv1.ReleaseName{Version: l.latest.Version, Template: l.latest.Template}
	}
	now := k.shared.Clock.Now()
	s.Releases = nil
	for _, release := range l.releases[:min(len(l.releases), maxReleases)] {
		s.Releases = append(s.Releases, l.releaseStatus(release, now))
	}
	const whole = "Every channel leads to a release"
	fact := status.True(modulesv1.ChannelsValidCondition, modulesv1.SucceededReason, whole)
	if l.broken != "" {
		fact = status.False(modulesv1.ChannelsValidCondition, modulesv1.ChannelsBrokenReason, l.broken)
	}
	return kernel.Report{Facts: []status.Fact{fact}, Message: whole}
}

// channelStatus is where a channel leads, and why nowhere.
func (l *lookup) channelStatus(channel catalog.ChannelStatus) modulesv1.ChannelStatus {
	s := modulesv1.ChannelStatus{
		Name: channel.Name, Version: channel.Version, Ready: channel.Ready && !channel.Suspended,
		Reason: channel.Reason, Message: cut(channel.Detail), Installations: count(l.counts.Channels[channel.Name]),
	}
	if channel.Release != nil {
		s.Template, s.Digest = channel.Release.Template, objects.PinOf(channel.Release.Digest)
	}
	switch {
	case channel.Reason != "":
	case channel.Suspended:
		s.Reason, s.Message = modulesv1.ChannelSuspendedReason, cut(channel.Message)
	case !channel.Ready:
		s.Reason, s.Message = modulesv1.ArtifactNotReadyReason, "The release is being fetched"
	default:
		s.Message = cut(channel.Message)
	}
	return s
}

// releaseStatus is a release, and the channels that point at it, by whichever template has it.
func (l *lookup) releaseStatus(release catalog.Release, now time.Time) modulesv1.ReleaseStatus {
	s := modulesv1.ReleaseStatus{
		ReleaseName: modulesv1.ReleaseName{Version: release.Version, Template: release.Template},
		State:       release.State(now),
		Ready:       release.Readiness != catalog.NotReady && !release.Deleting && !l.contested[release.Template],
	}
	for _, channel := range l.channels {
		target := channel.Release
		if target == nil || len(s.Channels) == maxReleaseChannels {
			continue
		}
		if target.Template == release.Template || objects.SameVersion(*target, release) && target.Digest == release.Digest {
			s.Channels = append(s.Channels, channel.Name)
		}
	}
	return s
}

func count(n int) int32 {
	return int32(min(n, 1<<31-1)) //nolint:gosec // It is bounded.
}

// Events implements kernel.Kind: channels that broke, or that lead somewhere again.
func (k *pointers) Events(before, after *modulesv1.Module, _ lookup, err error) []event.Event {
	about := event.About(after, modulesv1.GroupVersion.WithKind(modulesv1.ModuleKind))
	switch {
	case status.SaysTheSame(before, after):
		return nil
	case err != nil:
		_, reason := k.Table().Explain(err)
		tell := event.Failed
		if failure.Of(err).Disposition == failure.Waits && !conditions.IsReady(before) {
			// Nothing broke that had been whole: the releases are yet to come.
			tell = event.Waiting
		}
		return []event.Event{tell(about, reason, err, "")}
	case k.Table().HasFailed(before):
		return []event.Event{event.Recovered(about, event.Artifact{}, fmt.Sprintf("All channels of module %s lead to a release", after.Name))}
	default:
		return nil
	}
}
