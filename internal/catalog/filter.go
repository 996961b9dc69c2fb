package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// filter is a rule that leaves some releases, and what is said when it leaves none.
type filter struct {
	rule  string
	keeps func(*release) bool
	// spares says that the rule asks whether a release can be had. What is installed passes then, because keeping it needs
	// nothing, unless a twin passes in its own right.
	spares bool
	reason string
	// why says it of a release that is left out; after its title that is the message of the hold.
	why func(*release) string
}

// filter applies the rules in order.
func (r *resolution) filter(candidates []*release) ([]*release, *Hold) {
	for _, f := range r.filters() {
		kept := keep(candidates, f.keeps)
		if f.spares && !slices.ContainsFunc(kept, r.isCurrent) {
			kept = append(kept, keep(candidates, r.isCurrent)...)
		}
		r.narrow(f.rule, candidates, kept, "", f.why)
		if len(kept) == 0 {
			if f.reason == modulesv1.NoMatchingReleaseReason {
				return nil, &Hold{Reason: f.reason, Message: r.funnel()}
			}
			return nil, r.holdOne(f.reason, f.says(r, preferred(candidates, r.now, r.installed.Current)), candidates)
		}
		candidates = kept
	}
	return candidates, nil
}

// says is the message of a hold at the release that would have been preferred.
func (f filter) says(r *resolution, c *release) string {
	if f.reason == modulesv1.ConsumerNotAllowedReason {
		return fmt.Sprintf("Module %s does not admit namespace %s", r.entry.name, r.request.Namespace)
	}
	return c.title() + " " + f.why(c)
}

func (r *resolution) filters() []filter {
	admitted := r.admits(r.catalog, r.module)
	filters := []filter{
		{rule: "unique", spares: true, reason: modulesv1.ReleaseConflictReason, keeps: func(c *release) bool { return !c.conflict }, why: func(*release) string {
			return "shares its version with other content; publish it under a new version"
		}},
		{rule: "ready", spares: true, reason: modulesv1.ReleaseNotReadyReason, keeps: (*release).isChoosable, why: func(c *release) string {
			return "is not ready" + because(c.Message)
		}},
		{rule: "notWithdrawn", spares: true, reason: modulesv1.ReleaseWithdrawnReason, keeps: func(c *release) bool {
			return c.State(r.now) != modulesv1.SupportWithdrawn && !c.Deleting
		}, why: func(c *release) string {
			if c.Deleting {
				return "is being deleted"
			}
			return "is withdrawn" + c.Support.advice()
		}},
		{rule: "consumers", reason: modulesv1.ConsumerNotAllowedReason, keeps: func(*release) bool { return admitted }, why: func(*release) string {
			return "is of a module that does not admit namespace " + r.request.Namespace
		}},
	}
	if r.selection.followsReleases() {
		filters = append(filters, filter{rule: "prereleases", keeps: r.admitsPrerelease, reason: modulesv1.NoMatchingReleaseReason, why: func(*release) string {
			return "is a prerelease that spec.module.prereleases does not admit"
		}})
	}
	if r.selection.By == ByRange {
		filters = append(filters, filter{rule: "range", keeps: r.inRange, reason: modulesv1.NoMatchingReleaseReason, why: func(*release) string {
			return "is outside " + r.selection.Value
		}})
	}
	return filters
}

// admits says whether the installation may use a module of the catalogue. In its own namespace it always may.
func (r *resolution) admits(catalog modulesv1.Catalog, module string) bool {
	catalogue := r.index.at(catalog)
	found := catalogue.modules[module]
	if catalog != modulesv1.CatalogSystem || r.request.Namespace == catalogue.namespace || found == nil || found.object == nil || found.object.Admits == nil {
		return true
	}
	return found.object.Admits(r.request.Namespace)
}

func (r *resolution) admitsPrerelease(c *release) bool {
	prerelease := c.version.Prerelease()
	wanted := r.request.Prereleases
	if prerelease == "" || wanted.Policy == modulesv1.PrereleasesInclude {
		return true
	}
	first, _, _ := strings.Cut(prerelease, ".")
	return wanted.Policy == modulesv1.PrereleasesListed && slices.Contains(wanted.Identifiers, first)
}

func (r *resolution) inRange(c *release) bool {
	return r.selection.By != ByRange || r.versions.Contains(c.version)
}

// isCurrent says whether the release is what is installed, in whatever template.
func (r *resolution) isCurrent(c *release) bool {
	return r.current != nil && r.current.compare(c) == same
}

// funnel tells the trace in a sentence.
func (r *resolution) funnel() string {
	var steps []string
	for _, rule := range r.trace {
		steps = append(steps, fmt.Sprintf("%s %d", rule.Name, rule.Kept))
	}
	return fmt.Sprintf("No release of module %s is selected by %s: %s", r.entry.name, r.selection, strings.Join(steps, ", "))
}

// preferred is the best of the releases: supported before deprecated, then the highest version. Of templates that
// state the same one, the installed one comes first, then those that everyone may choose, then the oldest.
func preferred(releases []*release, now time.Time, current *modulesv1.Release) *release {
	rank := func(r *release) int {
		return slices.Index([]modulesv1.SupportState{modulesv1.SupportSupported, modulesv1.SupportDeprecated, modulesv1.SupportWithdrawn}, r.State(now))
	}
	return slices.MinFunc(releases, func(a, b *release) int {
		order := 0
		if a.known && b.known {
			order = b.version.Compare(a.version)
		}
		return cmp.Or(
			rank(a)-rank(b), order, first(a.isOf(current), b.isOf(current)), first(!a.Claims(), !b.Claims()), byPrecedence(a, b),
		)
	})
}

// isOf says whether the choice was made from the release's template.
func (r *release) isOf(choice *modulesv1.Release) bool {
	return choice != nil && choice.Template == r.Template
}

// first orders what is so before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
