package catalog

import (
	"cmp"
	"fmt"
	"slices"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/revision"
)

func (e *entry) findUnknown() {
	for _, r := range e.releases {
		stated := cmp.Or(r.Version, r.Stated)
		switch {
		case r.known:
		case stated == "":
			r.find(modulesv1.VersionUnknownReason, "The release has no version, so it can be chosen by channel or template name only")
		default:
			_, err := revision.ParseStrict(stated)
			r.find(modulesv1.VersionUnknownReason, fmt.Sprintf("The release can be chosen by channel or template name only: %v", err))
		}
	}
}

// findEqual finds templates that state one version. Same content makes them one release; for other content, the oldest
// template is in its right. Where none is the oldest, none is.
func (e *entry) findEqual() {
	for _, equal := range e.equalVersions() {
		rightful := rightfulDigest(equal)
		for _, r := range equal {
			var same, other []string
			for _, twin := range equal {
				switch {
				case twin == r:
				case twin.Digest == r.Digest:
					same = append(same, twin.Template)
				default:
					other = append(other, twin.Template)
				}
			}
			if r.Digest != rightful {
				r.conflict = true
				r.find(modulesv1.ReleaseConflictReason, fmt.Sprintf("Version %s stands for other content in %s; publish this one under a new version",
					r.Version, list(other)))
			}
			if len(same) > 0 {
				r.find(modulesv1.AliasReason, "The same version and content as "+list(same))
			}
		}
	}
}

// equalVersions groups the releases by precedence, where their content is known. Releases that are being deleted are
// out of it. Groups of one are left out.
func (e *entry) equalVersions() [][]*release {
	var groups [][]*release
	for _, r := range e.releases {
		if !r.known || r.Digest == "" || r.Deleting {
			continue
		}
		last := len(groups) - 1
		if last >= 0 && groups[last][0].version.Compare(r.version) == 0 {
			groups[last] = append(groups[last], r)
			continue
		}
		groups = append(groups, []*release{r})
	}
	return slices.DeleteFunc(groups, func(group []*release) bool { return len(group) < 2 })
}

// rightfulDigest is the content of the oldest of the releases; empty when the oldest ones differ. They are sorted by age.
func rightfulDigest(equal []*release) string {
	oldest := equal[0]
	for _, r := range equal {
		if r.Since.Equal(oldest.Since) && r.Digest != oldest.Digest {
			return ""
		}
	}
	return oldest.Digest
}

// findClaims finds claims that do not lead to the template: because there are several, or because the module has
// the last word.
func (e *entry) findClaims() {
	for name, claimants := range e.claims {
		if channel, listed := e.object.channel(name); listed {
			for _, r := range claimants {
				if !r.states(channel.Version) {
					r.find(modulesv1.ChannelOverriddenReason, fmt.Sprintf("Module %s points channel %s to version %s", e.name, name, channel.Version))
				}
			}
			continue
		}
		if len(claimants) < 2 {
			continue
		}
		for _, r := range claimants {
			r.find(modulesv1.ChannelConflictReason, fmt.Sprintf("Channel %s is claimed by %s", name, list(names(claimants))))
		}
	}
}

// states says whether the release has that version, by precedence.
func (r *release) states(version string) bool {
	parsed, err := revision.ParseStrict(version)
	return err == nil && r.known && r.version.Compare(parsed) == 0
}

// at are the releases of that version, by precedence.
func (e *entry) at(version string) []*release {
	parsed, err := revision.ParseStrict(version)
	return keep(e.releases, func(r *release) bool { return err == nil && r.known && r.version.Compare(parsed) == 0 })
}

func names(releases []*release) []string {
	var names []string
	for _, r := range releases {
		names = append(names, r.Template)
	}
	return names
}

// list writes a few of the names in order, and how many are left out.
func list(names []string) string {
	const few = 5
	return printable.List(slices.Sorted(slices.Values(names)), few)
}
