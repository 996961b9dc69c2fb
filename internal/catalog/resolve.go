package catalog

import (
	"fmt"
	"slices"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/revision"
)

// Resolve chooses the release that an installation should run. The same arguments always give the same decision, and
// without changes to the first three it stays the same until the decision's NextCheck.
func Resolve(request Request, installed Installed, index Index, now time.Time) Decision {
	r := &resolution{request: request, installed: installed, index: index, now: now, module: request.Name}
	if installed.Current != nil {
		r.current = newRun(installed.Current, "is installed")
		r.ran = append(r.ran, r.current)
	}
	if installed.Attempted != nil {
		r.ran = append(r.ran, newRun(installed.Attempted, "was begun, and may have changed data"))
	}
	target, hold := r.choose()
	return r.decide(target, hold)
}

// resolution is one choice on its way: what was asked, and what was found so far.
type resolution struct {
	request   Request
	installed Installed
	index     Index
	now       time.Time

	// current is what is installed; nil where nothing is. ran is that, and what was begun after it.
	current   *run
	ran       []*run
	selection Selection
	version   revision.Version
	versions  revision.StrictRange
	catalog   modulesv1.Catalog
	contents  *Contents
	module    string
	entry     *entry
	trace     []Rule
	warnings  []Finding
}

// choose finds the release to run. With a hold, it is the release that would have been moved to, where there is one.
func (r *resolution) choose() (*release, *Hold) {
	if hold := r.read(); hold != nil {
		return nil, hold
	}
	if hold := r.locate(); hold != nil {
		return nil, hold
	}
	candidates, hold := r.selected()
	if hold != nil {
		return nil, hold
	}
	fit, hold := r.filter(candidates)
	if hold != nil {
		return nil, hold
	}
	target := r.reach(fit)
	return target, r.permit(target)
}

// decide turns what was found into the answer.
func (r *resolution) decide(target *release, hold *Hold) Decision {
	d := Decision{Catalog: r.catalog, Module: r.module, SelectedBy: r.selection, Hold: hold, Trace: r.trace}
	if r.contents != nil {
		d.Namespace = r.contents.namespace
	}
	switch {
	case hold == nil:
		stated := target.Release
		d.Target, d.Changed = &stated, r.current == nil || r.current.compare(target) != same
	case target != nil:
		stated := target.Release
		hold.Candidate = &stated
	}
	running := target
	if hold != nil {
		hold.Stalled = len(r.ran) == 0 || hold.IsMalformed()
		running = r.running()
	}
	d.Upgrades = r.upgrades(d)
	d.Warnings = append(r.warnings, r.warn(running)...)
	d.NextCheck = r.nextCheck(running, d)
	return d
}

func (r *resolution) note(rule string, kept int, note string) {
	r.trace = append(r.trace, Rule{Name: rule, Kept: kept, Note: note})
}

// narrow notes what a rule left of the releases, and why it left out the others.
func (r *resolution) narrow(rule string, from, kept []*release, note string, why func(*release) string) {
	r.note(rule, len(kept), note)
	if !r.request.Explain {
		return
	}
	dropped := &r.trace[len(r.trace)-1].Dropped
	for _, c := range from {
		if !slices.Contains(kept, c) {
			*dropped = append(*dropped, Dropped{Template: c.Template, Version: c.Version, Why: why(c)})
		}
	}
}

// running is what is installed, as its template has it; nil when the template is gone or says something else by now.
func (r *resolution) running() *release {
	if r.entry == nil || r.current == nil {
		return nil
	}
	for _, c := range r.entry.releases {
		if c.isOf(r.current.Release) && r.isCurrent(c) {
			return c
		}
	}
	return nil
}

// warn says what is wrong with a release that runs or is about to.
func (r *resolution) warn(running *release) []Finding {
	if running == nil {
		return nil
	}
	name := running.title()
	var warnings []Finding
	if running.Deleting {
		warnings = append(warnings, Finding{modulesv1.ReleaseWithdrawnReason, name + " is being deleted"})
	}
	switch running.State(r.now) {
	case modulesv1.SupportWithdrawn:
		warnings = append(warnings, Finding{modulesv1.ReleaseWithdrawnReason, name + " is withdrawn" + running.Support.advice()})
	case modulesv1.SupportDeprecated:
		warnings = append(warnings, Finding{modulesv1.ReleaseDeprecatedReason, name + " is deprecated" + running.Support.advice()})
	case modulesv1.SupportSupported:
	}
	if !running.isChoosable() {
		warnings = append(warnings, Finding{modulesv1.ReleaseNotReadyReason, name + " is not ready" + because(running.Message)})
	}
	if running.conflict {
		warnings = append(warnings, Finding{modulesv1.ReleaseConflictReason, name + " shares its version with other content"})
	}
	return warnings
}

// nextCheck is when the support of a release ends that has a say in the answer: of any that might be the highest, and
// of the templates that state the version in question.
func (r *resolution) nextCheck(running *release, d Decision) time.Time {
	if r.entry == nil {
		return time.Time{}
	}
	hasSay := func(c *release) bool {
		return c == running || r.selection.followsReleases() && c.known && !c.Claims() ||
			running != nil && c.states(running.Version) || d.Hold != nil && d.Hold.Candidate != nil && c.states(d.Hold.Candidate.Version)
	}
	var next time.Time
	for _, c := range r.entry.releases {
		until := c.Support.Until
		if until.After(r.now) && c.State(r.now) == modulesv1.SupportSupported && (next.IsZero() || until.Before(next)) && hasSay(c) {
			next = until
		}
	}
	return next
}

// title names the release in a message.
func (r *release) title() string {
	if r.known {
		return fmt.Sprintf("Release %s (template %s)", r.Version, r.Template)
	}
	return "Release of template " + r.Template
}

// advice is what the module's team says about moving on.
func (s Support) advice() string {
	text := because(s.Message)
	if s.ReplacedBy != "" {
		text += "; it is replaced by " + s.ReplacedBy
	}
	return text
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
