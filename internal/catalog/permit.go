package catalog

import (
	"fmt"
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// run is a release that has run, in full or in part, and what is to be said of that.
type run struct {
	*modulesv1.Release
	release release
	state   string
}

func newRun(choice *modulesv1.Release, state string) *run {
	made := &run{Release: choice, state: state}
	made.release.Release = Release{Template: choice.Template, Version: choice.Version, Digest: choice.Content}
	made.release.read()
	return made
}

// direction is where a release lies, seen from what has run.
type direction int

const (
	// same is the same content under the same version.
	same direction = iota
	// newer and older are by full precedence, prereleases included.
	newer
	older
	// clash is other content under the same version.
	clash
	// untold is other content where one of the two versions is unknown.
	untold
)

// compare looks from what has run.
func (from *run) compare(c *release) direction {
	equal := c.Digest != "" && c.Digest == from.Content
	if !from.release.known || !c.known {
		if equal {
			return same
		}
		return untold
	}
	switch order := c.version.Compare(from.release.version); {
	case order > 0:
		return newer
	case order < 0:
		return older
	case equal:
		return same
	default:
		return clash
	}
}

// reach is the release to move to, of those that the request allows. Following the highest release never means going
// back, nor further than one step at once. Where that leaves nothing, it is the one to be held at.
func (r *resolution) reach(fit []*release) *release {
	if r.selection.followsReleases() && len(r.ran) > 0 {
		onward := keep(fit, func(c *release) bool {
			return !slices.ContainsFunc(r.ran, func(from *run) bool { return from.compare(c) == older })
		})
		within := keep(onward, r.withinStep)
		r.narrow("upgradePath", fit, within, "", r.offPath)
		switch {
		case len(within) > 0:
			fit = within
		case len(onward) > 0:
			fit = onward
		}
	}
	target := preferred(fit, r.now, r.installed.Current)
	r.narrow("support", fit, []*release{target}, target.Template, func(*release) string {
		return "comes after " + target.title() + " in support, precedence or age"
	})
	return target
}

// offPath says why following releases does not lead to this one.
func (r *resolution) offPath(c *release) string {
	for _, from := range r.ran {
		if from.compare(c) == older {
			return fmt.Sprintf("is older than %s, which %s", from.Version, from.state)
		}
	}
	return fmt.Sprintf("is a larger step from %s than %s", r.current.Version, r.request.Upgrade.MaxStep)
}

// permit says why the installation does not move to the release, or nothing.
func (r *resolution) permit(target *release) *Hold {
	for _, from := range r.ran {
		if hold := r.permitDirection(from, target); hold != nil {
			return hold
		}
		if hold := r.permitLeaving(from, target); hold != nil {
			return hold
		}
	}
	if r.current == nil || r.current.compare(target) == same {
		return nil
	}
	if !r.withinStep(target) {
		return &Hold{Reason: modulesv1.UpgradeBlockedReason, Message: fmt.Sprintf("Version %s is a larger step from %s than %s",
			target.Version, r.current.Version, r.request.Upgrade.MaxStep)}
	}
	return r.permitMode(target)
}

func (r *resolution) permitDirection(from *run, target *release) *Hold {
	towards := from.compare(target)
	switch {
	case towards == clash:
		return &Hold{Reason: modulesv1.ReleaseConflictReason, Message: fmt.Sprintf(
			"Version %s has other content than template %s has now, and %s; publish the template's under a new version",
			from.Version, target.Template, from.state)}
	case towards == same || towards == newer || r.consents(target) || r.goesBack(target):
		return nil
	case towards == older:
		return &Hold{Reason: modulesv1.DowngradeBlockedReason, Message: fmt.Sprintf(
			"Version %s is older than %s, which %s; to go back, set allowDowngradeTo to %s", target.Version, from.Version, from.state, target.Version)}
	default:
		hint := "give the template a version"
		if target.known {
			hint = "set allowDowngradeTo to " + target.Version
		}
		return &Hold{Reason: modulesv1.VersionUnknownReason, Message: fmt.Sprintf(
			"Nothing says whether template %s is newer than what %s; to move there, %s", target.Template, from.state, hint)}
	}
}

// permitLeaving holds who has come by a one-way channel and would get there by another way from now on, even where the
// content is the same: the next release would not come from the channel.
func (r *resolution) permitLeaving(from *run, target *release) *Hold {
	stays := r.selection.By == ByChannel && r.selection.Value == from.Channel && r.contents.namespace == from.Namespace
	if from.Channel == "" || stays || r.consents(target) {
		return nil
	}
	home := r.home(from)
	if home == nil {
		return nil
	}
	if channel, listed := home.object.channel(from.Channel); !listed || !channel.OneWay {
		return nil
	}
	hint := "the release needs a version for that"
	if target.known {
		hint = "to leave, set allowDowngradeTo to " + target.Version
	}
	return &Hold{Reason: modulesv1.OneWayChannelReason, Message: fmt.Sprintf("Channel %s is left with consent only; %s", from.Channel, hint)}
}

// home is the module as the catalogue has it that the release was chosen from: another one has no say about its channels.
func (r *resolution) home(from *run) *entry {
	for _, catalogue := range []*Contents{r.index.at(modulesv1.CatalogLocal), r.index.at(modulesv1.CatalogSystem)} {
		if catalogue.namespace == from.Namespace {
			return catalogue.modules[r.entry.name]
		}
	}
	return nil
}

func (r *resolution) permitMode(target *release) *Hold {
	switch r.request.Upgrade.Mode {
	case modulesv1.UpgradeNever:
		return &Hold{Reason: modulesv1.UpgradesNeverReason, Message: fmt.Sprintf("%s is selected, and the upgrade mode is Never", target.title())}
	case modulesv1.UpgradeManual:
		if r.approved(target) {
			return nil
		}
		return &Hold{Reason: modulesv1.AwaitingApprovalReason, Message: target.title() + " waits for the digest of its plan in approve" + r.planHint(target)}
	default:
		return nil
	}
}

// consents says whether the request names this very version as one to go back to.
func (r *resolution) consents(target *release) bool {
	return target.known && target.Version == r.request.Upgrade.AllowDowngradeTo
}

// goesBack says whether the request itself names what ran before: that is possible even when it is older.
func (r *resolution) goesBack(target *release) bool {
	before := []*modulesv1.Release{r.installed.Previous}
	if r.installed.Attempted != nil {
		before = append(before, r.installed.Current)
	}
	return r.selection.namesRelease() && target.Digest != "" && slices.ContainsFunc(before, func(c *modulesv1.Release) bool {
		return c != nil && target.Digest == c.Content && target.Version == c.Version
	})
}

func (r *resolution) approved(target *release) bool {
	return r.plans(target) && r.request.Upgrade.Approve == r.installed.Plan.Digest
}

// plans says whether the caller's plan is for this release.
func (r *resolution) plans(target *release) bool {
	plan := r.installed.Plan
	return plan != nil && plan.Digest != "" && plan.Version == target.Version && plan.Content == target.Digest
}

func (r *resolution) planHint(target *release) string {
	if !r.plans(target) {
		return ""
	}
	return ": " + r.installed.Plan.Digest
}

// withinStep says whether the release, if it is newer than what is installed, is no further away than the request allows.
func (r *resolution) withinStep(target *release) bool {
	if r.current == nil || r.current.compare(target) != newer {
		return true
	}
	from, to := r.current.release.version, target.version
	switch r.request.Upgrade.MaxStep {
	case modulesv1.StepPatch:
		return from.Major() == to.Major() && from.Minor() == to.Minor()
	case modulesv1.StepMinor:
		return from.Major() == to.Major()
	default:
		return true
	}
}
