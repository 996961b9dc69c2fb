package catalog

import "fmt"

// direction is where a release lies, seen from what is installed.
type direction int

const (
	// same is the installed content under the same version.
	same direction = iota
	// newer and older are by full precedence, prereleases included.
	newer
	older
	// clash is other content under the same version.
	clash
	// untold is other content where one of the two versions is unknown.
	untold
)

// compare looks from what is installed, which must be something.
func (r *resolution) compare(c *release) direction {
	equal := c.Digest != "" && c.Digest == r.current.Digest
	if !r.current.known || !c.known {
		if equal {
			return same
		}
		return untold
	}
	switch order := c.version.Compare(r.current.version); {
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
	if r.selection.followsReleases() && r.installed.Current != nil {
		onward := keep(fit, func(c *release) bool { return r.compare(c) != older })
		within := keep(onward, func(c *release) bool { return r.compare(c) != newer || r.withinStep(c) })
		r.note("upgradePath", len(within), "")
		switch {
		case len(within) > 0:
			fit = within
		case len(onward) > 0:
			fit = onward
		}
	}
	target := preferred(fit, r.now, r.installed.Current)
	r.note("support", 1, target.Template)
	return target
}

// permit says why the installation does not move to the release, or nothing.
func (r *resolution) permit(target *release) *Hold {
	if r.installed.Current == nil {
		return nil
	}
	towards := r.compare(target)
	if hold := r.permitDirection(target, towards); hold != nil {
		return hold
	}
	if hold := r.permitLeaving(target); hold != nil {
		return hold
	}
	if towards == same {
		return nil
	}
	if towards == newer && !r.withinStep(target) {
		return &Hold{Reason: UpgradeBlocked, Message: fmt.Sprintf("Version %s is a larger step from %s than %s",
			target.Version, r.installed.Current.Version, r.request.Upgrade.MaxStep)}
	}
	return r.permitMode(target)
}

func (r *resolution) permitDirection(target *release, towards direction) *Hold {
	current := r.installed.Current
	switch {
	case towards == clash:
		return &Hold{Reason: Conflict, Message: fmt.Sprintf(
			"Version %s is installed with other content than template %s has now; publish that under a new version", current.Version, target.Template)}
	case towards == same || towards == newer || r.consents(target) || r.goesBack(target):
		return nil
	case towards == older:
		return &Hold{Reason: DowngradeBlocked, Message: fmt.Sprintf(
			"Version %s is older than %s, which is installed; to go back, set allowDowngradeTo to %s", target.Version, current.Version, target.Version)}
	default:
		hint := "give the template a version"
		if target.known {
			hint = "set allowDowngradeTo to " + target.Version
		}
		return &Hold{Reason: VersionUnknown, Message: fmt.Sprintf(
			"Nothing says whether template %s is newer than what is installed; to move there, %s", target.Template, hint)}
	}
}

// permitLeaving holds who is in a one-way channel and would get there by another way from now on, even where the
// content is the same: the next release would not come from the channel.
func (r *resolution) permitLeaving(target *release) *Hold {
	from := r.installed.Current.Channel
	stays := r.selection.By == ByChannel && r.selection.Value == from && r.catalogue.namespace == r.installed.Current.Namespace
	if from == "" || stays || r.consents(target) {
		return nil
	}
	home := r.home()
	if home == nil {
		return nil
	}
	if channel, listed := home.object.channel(from); !listed || !channel.OneWay {
		return nil
	}
	hint := "the release needs a version for that"
	if target.known {
		hint = "to leave, set allowDowngradeTo to " + target.Version
	}
	return &Hold{Reason: OneWayChannel, Message: fmt.Sprintf("Channel %s is left with consent only; %s", from, hint)}
}

// home is the module as the catalogue has it that the installed release was chosen from: another one has no say about
// its channels.
func (r *resolution) home() *entry {
	for _, catalogue := range []*Catalogue{r.index.at(Local), r.index.at(System)} {
		if catalogue.namespace == r.installed.Current.Namespace {
			return catalogue.modules[r.entry.name]
		}
	}
	return nil
}

func (r *resolution) permitMode(target *release) *Hold {
	switch r.request.Upgrade.Mode {
	case Never:
		return &Hold{Reason: UpgradesNever, Message: fmt.Sprintf("%s is selected, and the upgrade mode is Never", target.title())}
	case Manual:
		if r.approved(target) {
			return nil
		}
		return &Hold{Reason: AwaitingApproval, Message: target.title() + " waits for the digest of its plan in approve" + r.planHint(target)}
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
	previous := r.installed.Previous
	return previous != nil && r.selection.namesRelease() &&
		target.Digest != "" && target.Digest == previous.Digest && target.Version == previous.Version
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

// withinStep says whether the release, newer by a known version, is no further away than the request allows.
func (r *resolution) withinStep(target *release) bool {
	from, to := r.current.version, target.version
	switch r.request.Upgrade.MaxStep {
	case Patch:
		return from.Major() == to.Major() && from.Minor() == to.Minor()
	case Minor:
		return from.Major() == to.Major()
	default:
		return true
	}
}
