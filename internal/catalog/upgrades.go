package catalog

import modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"

// upgrades are the releases newer than what is installed. Of those that the request does not lead to, prereleases are
// left out: nobody waits for them.
func (r *resolution) upgrades(d Decision) []modulesv1.AvailableUpgrade {
	if r.current == nil || r.entry == nil || d.Hold != nil && d.Hold.IsMalformed() {
		return nil
	}
	chosen := d.Chosen()
	isChosen := func(c *release) bool { return chosen != nil && c.Template == chosen.Template }
	offers := keep(r.entry.releases, func(c *release) bool {
		return c.known && r.current.compare(c) == newer && (isChosen(c) || r.lists(c))
	})
	var upgrades []modulesv1.AvailableUpgrade
	for len(offers) > 0 && len(upgrades) < MaxUpgrades {
		var twins []*release
		for len(offers) > 0 && (len(twins) == 0 || offers[0].version.Compare(twins[0].version) == 0) {
			twins, offers = append(twins, offers[0]), offers[1:]
		}
		// The chosen twin speaks for its version, else one that can be had.
		for _, wanted := range []func(*release) bool{isChosen, (*release).isChoosable} {
			if some := keep(twins, wanted); len(some) > 0 {
				twins = some
				break
			}
		}
		best := preferred(twins, r.now, r.installed.Current)
		reason := r.objection(best, d, isChosen(best))
		upgrades = append(upgrades, modulesv1.AvailableUpgrade{
			Version: best.Version, Template: best.Template, Allowed: reason == "", Reason: reason,
		})
	}
	return upgrades
}

// lists says whether the release is worth telling of.
func (r *resolution) lists(c *release) bool {
	if c.Claims() || c.conflict || c.Deleting || c.State(r.now) == modulesv1.SupportWithdrawn {
		return false
	}
	return c.version.Prerelease() == "" || r.selection.followsReleases() && r.admitsPrerelease(c)
}

// objection is why the request does not move to the release; nothing when it does, or would if there were nothing
// newer.
func (r *resolution) objection(c *release, d Decision, chosen bool) string {
	switch {
	case chosen && d.Hold != nil:
		return d.Hold.Reason
	case chosen:
		return ""
	case !r.admits(r.catalog, r.module):
		return modulesv1.ConsumerNotAllowedReason
	case !r.selection.followsReleases() || !r.inRange(c):
		return modulesv1.NotSelectedReason
	case !c.isChoosable():
		return modulesv1.ReleaseNotReadyReason
	}
	if hold := r.permit(c); hold != nil {
		return hold.Reason
	}
	return ""
}
