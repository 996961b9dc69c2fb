package catalog

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

const (
	// MaxEdits is how many edits are told of.
	MaxEdits = 5
	// maxTried is how many templates of the version are tried, and channels that lead to it: there may be thousands.
	maxTried = 5
)

// Edit is another request, which was tried and leads to the version that was asked about.
type Edit struct {
	Request Request
	// Waits says that the plan of the release has to be approved then.
	Waits bool
}

// Edits are other requests that lead to the version, by precedence, those that change the fewest fields first. Where none
// does, the hold is what stands in the way whatever is edited; it may be nil where the index has no such version, and is where
// the request as it is leads there.
func Edits(request Request, installed Installed, index Index, now time.Time, version string) ([]Edit, *Hold) {
	request.Explain = false
	t := trial{request: request, installed: installed, index: index, now: now, version: version}
	d := t.resolve(request)
	if leads(d, version) == itself {
		return nil, nil
	}
	if d.Catalog == "" {
		// The selector cannot be read. What remains says where to look, unless that cannot be read either.
		d = t.resolve(selectNothing(request))
	}
	if d.Catalog == "" {
		return nil, d.Hold
	}
	moved := request
	moved.Catalog = other(d.Catalog)
	hold := d.Hold
	for _, try := range []struct {
		in   modulesv1.Catalog
		base Request
	}{{d.Catalog, request}, {moved.Catalog, request}, {moved.Catalog, moved}} {
		entry := index.at(try.in).modules[d.Module]
		if entry == nil || len(entry.at(version)) == 0 {
			continue
		}
		var edits []Edit
		if edits, hold = t.in(entry, try.base); len(edits) > 0 {
			return edits, nil
		}
	}
	return nil, hold
}

// other is the other one of the two catalogues.
func other(c modulesv1.Catalog) modulesv1.Catalog {
	if c == modulesv1.CatalogSystem {
		return modulesv1.CatalogLocal
	}
	return modulesv1.CatalogSystem
}

// trial tries edits.
type trial struct {
	request   Request
	installed Installed
	index     Index
	now       time.Time
	version   string

	found []Edit
}

// in tries to get the version from the module as one catalogue has it.
func (t *trial) in(entry *entry, base Request) ([]Edit, *Hold) {
	twins := entry.at(t.version)
	twins = twins[:min(len(twins), maxTried)]
	// Consent names a version to the letter.
	spelt := slices.CompactFunc(slices.Clone(twins), func(a, b *release) bool { return a.Version == b.Version })
	for _, twin := range spelt {
		for _, selecting := range t.selections(entry, base, twin.Version) {
			t.try(selecting, t.fixes(twin))
		}
	}
	// A template's name pins to an object, so that it is the last resort.
	var hold *Hold
	for _, twin := range twins {
		if len(t.found) > 0 {
			break
		}
		hold = t.tryTemplate(base, twin)
	}
	slices.SortStableFunc(t.found, func(a, b Edit) int { return t.size(a.Request) - t.size(b.Request) })
	if len(t.found) == 0 {
		return nil, hold
	}
	return t.found[:min(len(t.found), MaxEdits)], nil
}

// tryTemplate tries the template's name, and says what stands in the way of it with all consents.
func (t *trial) tryTemplate(base Request, twin *release) *Hold {
	selecting, fixes := selectNothing(base), t.fixes(twin)
	selecting.Template = twin.Template
	t.try(selecting, fixes)
	for _, fix := range fixes {
		fix(&selecting)
	}
	return t.resolve(selecting).Hold
}

// selections are ways to select the version, the request's own first.
func (t *trial) selections(entry *entry, base Request, version string) []Request {
	all := []Request{base}
	add := func(selecting func(*Request)) {
		made := selectNothing(base)
		made.Name = entry.name
		selecting(&made)
		all = append(all, made)
	}
	if base.Range != "" {
		// A wider range leads further later on. Where newer releases are in it, only this very version is added.
		add(func(r *Request) { r.Range = base.Range + " || ^" + version })
		add(func(r *Request) { r.Range = base.Range + " || " + version })
	}
	channels := slices.DeleteFunc(entry.channels(), func(channel string) bool {
		pointed, _ := entry.pointer(channel)
		return !slices.ContainsFunc(pointed, func(r *release) bool { return r.states(version) })
	})
	for _, channel := range channels[:min(len(channels), maxTried)] {
		add(func(r *Request) { r.Channel = channel })
	}
	add(func(r *Request) { r.Version = version })
	add(func(r *Request) { r.Latest = true })
	return all
}

func selectNothing(r Request) Request {
	r.Template, r.Channel, r.Version, r.Range, r.Latest = "", "", "", "", false
	return r
}

// fixes are the consents that a move to the release may need, as far as the request does not give them.
func (t *trial) fixes(to *release) []func(*Request) {
	var all []func(*Request)
	add := func(fix func(*Request)) {
		made := t.request
		if fix(&made); differing(t.request, made) > 0 {
			all = append(all, fix)
		}
	}
	if prerelease := to.version.Prerelease(); prerelease != "" {
		first, _, _ := strings.Cut(prerelease, ".")
		add(func(r *Request) { r.Prereleases = listing(r.Prereleases, first) })
	}
	if t.request.Upgrade.MaxStep != "" && t.request.Upgrade.MaxStep != modulesv1.StepMajor {
		add(func(r *Request) { r.Upgrade.MaxStep = t.step(to) })
	}
	add(func(r *Request) { r.Upgrade.AllowDowngradeTo = to.Version })
	if plan := t.installed.Plan; plan != nil && plan.Version == to.Version {
		add(func(r *Request) { r.Upgrade.Approve = plan.Digest })
	}
	if mode := t.request.Upgrade.Mode; mode == modulesv1.UpgradeManual || mode == modulesv1.UpgradeNever {
		add(func(r *Request) { r.Upgrade.Mode = modulesv1.UpgradeAutomatic })
	}
	return all
}

// step is the smallest one that reaches the release, of those beyond patches.
func (t *trial) step(to *release) modulesv1.UpgradeStep {
	if t.installed.Current != nil {
		if from := newRun(t.installed.Current, ""); from.release.known && from.release.version.Major() == to.version.Major() {
			return modulesv1.StepMinor
		}
	}
	return modulesv1.StepMajor
}

// listing lets in the prereleases that begin with the identifier too.
func listing(p modulesv1.Prereleases, identifier string) modulesv1.Prereleases {
	if p.Policy == modulesv1.PrereleasesInclude || p.Policy == modulesv1.PrereleasesListed && slices.Contains(p.Identifiers, identifier) {
		return p
	}
	listed := modulesv1.Prereleases{Policy: modulesv1.PrereleasesListed, Identifiers: []string{identifier}}
	if p.Policy == modulesv1.PrereleasesListed {
		listed.Identifiers = append(slices.Clone(p.Identifiers), identifier)
	}
	return listed
}

// try finds the smallest sets of fixes with which the selection leads to the version. A larger set counts only where it
// leads there without an approval.
func (t *trial) try(selecting Request, fixes []func(*Request)) {
	type success struct {
		set uint
		how way
	}
	var successes []success
	sets := make([]uint, 1<<len(fixes))
	for i := range sets {
		sets[i] = uint(i)
	}
	slices.SortStableFunc(sets, func(a, b uint) int { return bits.OnesCount(a) - bits.OnesCount(b) })
	for _, set := range sets {
		edited := selecting
		for i, fix := range fixes {
			if set&(1<<i) != 0 {
				fix(&edited)
			}
		}
		how := leads(t.resolve(edited), t.version)
		inVain := slices.ContainsFunc(successes, func(s success) bool { return s.set&set == s.set && s.how >= how })
		if how == elsewhere || inVain {
			continue
		}
		successes = append(successes, success{set, how})
		known := slices.ContainsFunc(t.found, func(e Edit) bool { return differing(e.Request, edited) == 0 })
		if t.size(edited) > 0 && !known {
			t.found = append(t.found, Edit{Request: edited, Waits: how == approved})
		}
	}
}

// resolve tries the request. A request for another catalogue makes the earlier choice of one forgotten.
func (t *trial) resolve(edited Request) Decision {
	installed := t.installed
	if edited.Catalog != t.request.Catalog {
		installed.Catalog = ""
	}
	return Resolve(edited, installed, t.index, t.now)
}

// way is how a decision leads to a version, the better the higher.
type way int

const (
	// elsewhere is not at all, approved only once its plan is, and itself right away.
	elsewhere way = iota
	approved
	itself
)

// leads says how the decision leads to the version.
func leads(d Decision, version string) way {
	states := func(r *Release) bool {
		if r == nil {
			return false
		}
		read := release{Release: *r}
		read.read()
		return read.states(version)
	}
	switch {
	case states(d.Target):
		return itself
	case d.Hold != nil && d.Hold.Reason == modulesv1.AwaitingApprovalReason && states(d.Hold.Candidate):
		return approved
	default:
		return elsewhere
	}
}

// size is how many fields the edit changes.
func (t *trial) size(edited Request) int { return differing(t.request, edited) }

// differing is how many fields are not the same.
func differing(a, b Request) int {
	n := 0
	for _, same := range []bool{
		a.Name == b.Name, a.Template == b.Template, a.Catalog == b.Catalog, a.Channel == b.Channel, a.Version == b.Version,
		a.Range == b.Range, a.Latest == b.Latest, a.Upgrade.Mode == b.Upgrade.Mode, a.Upgrade.MaxStep == b.Upgrade.MaxStep,
		a.Upgrade.AllowDowngradeTo == b.Upgrade.AllowDowngradeTo, a.Upgrade.Approve == b.Upgrade.Approve,
		a.Prereleases.Policy == b.Prereleases.Policy && slices.Equal(a.Prereleases.Identifiers, b.Prereleases.Identifiers),
	} {
		if !same {
			n++
		}
	}
	return n
}
