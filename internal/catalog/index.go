package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/revision"
)

// Index is what can be chosen from. In the system's own namespace, both catalogues are the same one.
type Index struct {
	// Local and System may be nil, which is empty.
	Local  *Contents
	System *Contents
}

func (i Index) at(name modulesv1.Catalog) *Contents {
	catalogue := i.Local
	if name == modulesv1.CatalogSystem {
		catalogue = i.System
	}
	if catalogue == nil {
		return &Contents{}
	}
	return catalogue
}

// Contents are what one namespace offers. They never change, so that many may read it at once.
type Contents struct {
	namespace string
	modules   map[string]*entry
	templates map[string]*release
}

// entry is a module with its releases, the highest precedence first and unknown versions last.
type entry struct {
	name     string
	object   *Module
	releases []*release
	claims   map[string][]*release
}

// release is a Release with its version read and its findings made.
type release struct {
	Release
	version  revision.Version
	known    bool
	conflict bool
	findings []Finding
}

// New reads a namespace's catalogue. The order of the lists has no say; names are unique in each.
func New(namespace string, releases []Release, modules []Module) *Contents {
	c := &Contents{namespace: namespace, modules: map[string]*entry{}, templates: map[string]*release{}}
	for _, module := range modules {
		c.entry(module.Name).object = &module
	}
	for _, stated := range releases {
		r := &release{Release: stated}
		c.templates[r.Template] = r
		r.read()
		if r.Module == "" {
			r.find(modulesv1.ModuleUnknownReason, "The template does not say which module it is a release of")
			continue
		}
		entry := c.entry(r.Module)
		entry.releases = append(entry.releases, r)
		if r.Claims() && !r.Deleting {
			entry.claims[r.Channel] = append(entry.claims[r.Channel], r)
		}
	}
	for _, entry := range c.modules {
		slices.SortFunc(entry.releases, byPrecedence)
		entry.findUnknown()
		entry.findEqual()
		entry.findClaims()
	}
	return c
}

// Namespace is where the catalogue is.
func (c *Contents) Namespace() string { return c.namespace }

// Modules are the names of the modules that the catalogue knows, in order.
func (c *Contents) Modules() []string { return slices.Sorted(maps.Keys(c.modules)) }

// Findings are what is to be said about a template: Alias, Conflict, ChannelConflict, ChannelOverridden,
// VersionUnknown and ModuleUnknown. None for one that the catalogue does not have.
func (c *Contents) Findings(template string) []Finding {
	if r := c.templates[template]; r != nil {
		return slices.Clone(r.findings)
	}
	return nil
}

// Releases are all the module's releases, the highest precedence first and unknown versions last.
func (c *Contents) Releases(module string) []Release {
	var releases []Release
	if entry := c.modules[module]; entry != nil {
		for _, r := range entry.releases {
			releases = append(releases, r.Release)
		}
	}
	return releases
}

// Latest is the highest release that is supported, ready or idle, offered to everyone, and no prerelease.
func (c *Contents) Latest(module string, now time.Time) (latest Release, found bool) {
	entry := c.modules[module]
	if entry == nil {
		return Release{}, false
	}
	offered := keep(entry.offered(), func(r *release) bool {
		return r.version.Prerelease() == "" && !r.conflict && !r.Deleting && r.isChoosable() && r.State(now) == modulesv1.SupportSupported
	})
	if len(offered) == 0 {
		return Release{}, false
	}
	return preferred(offered, now, nil).Release, true
}

func (c *Contents) entry(module string) *entry {
	if c.modules[module] == nil {
		c.modules[module] = &entry{name: module, claims: map[string][]*release{}}
	}
	return c.modules[module]
}

// shadows says whether the catalogue has the module in its own right, so that the system's is not looked at.
func (c *Contents) shadows(module string) bool { return c.shadowsWithout(module, "") }

// shadowsWithout says whether it would do so without that template.
func (c *Contents) shadowsWithout(module, template string) bool {
	entry := c.modules[module]
	return entry != nil && (entry.object != nil || slices.ContainsFunc(entry.releases, func(r *release) bool {
		return r.isChoosable() && !r.Deleting && r.Template != template
	}))
}

// offered are the releases that everyone may choose by version: those in no channel.
func (e *entry) offered() []*release {
	return keep(e.releases, func(r *release) bool { return r.known && !r.Claims() })
}

// channels are the names of the module's channels, listed or claimed, in order.
func (e *entry) channels() []string {
	names := slices.Collect(maps.Keys(e.claims))
	if e.object != nil {
		for _, channel := range e.object.Channels {
			names = append(names, channel.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func byPrecedence(a, b *release) int {
	if a.known && b.known {
		if order := b.version.Compare(a.version); order != 0 {
			return order
		}
	}
	return cmp.Or(first(a.known, b.known), a.Since.Compare(b.Since), strings.Compare(a.Template, b.Template))
}

// isChoosable says whether the release can be had.
func (r *release) isChoosable() bool { return r.Readiness == Ready || r.Readiness == Idle }

// read reads the version.
func (r *release) read() {
	if version, err := revision.ParseStrict(r.Version); err == nil {
		r.version, r.known = version, true
	}
}

func (r *release) find(reason string, message string) {
	r.findings = append(r.findings, Finding{Reason: reason, Message: message})
}
