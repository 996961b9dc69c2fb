package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// now is when the examples take place.
var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const (
	systemNamespace = "sluice-system"
	localNamespace  = "team-a"
)

// example is a question and the answer in one line, as outcome writes it.
type example struct {
	reason    string
	request   catalog.Request
	installed catalog.Installed
	index     catalog.Index
	want      string
}

func run(t *testing.T, examples map[string]example) {
	t.Helper()
	for name, tc := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.reason == "" {
				t.Fatal("the case has no reason")
			}
			d := catalog.Resolve(tc.request, tc.installed, tc.index, now)
			if diff := cmp.Diff(tc.want, outcome(tc.installed, d)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%+v\n%+v", tc.reason, diff, d.Hold, d.Trace)
			}
			if again := catalog.Resolve(tc.request, tc.installed, tc.index, now); !cmp.Equal(d, again) {
				t.Errorf("%s: asked twice, answered twice:\n%s", tc.reason, cmp.Diff(d, again))
			}
			checkSound(t, tc.installed, d)
		})
	}
}

// checkSound checks what holds for every decision.
func checkSound(t *testing.T, installed catalog.Installed, d catalog.Decision) {
	t.Helper()
	if (d.Target == nil) == (d.Hold == nil) {
		t.Errorf("a decision is a target or a hold: %+v", d)
	}
	if d.Hold != nil && (d.Hold.Reason == "" || d.Hold.Message == "" || strings.HasSuffix(d.Hold.Message, ".")) {
		t.Errorf("a hold says why in a sentence without a full stop: %+v", d.Hold)
	}
	if d.Hold != nil && d.Hold.Stalled != (installed.Current == nil && installed.Attempted == nil || d.Hold.IsMalformed()) {
		t.Errorf("stalled is what nothing but an edit can help, or has nothing to keep: %+v", d.Hold)
	}
	if d.Hold != nil && d.Changed {
		t.Error("a hold changes something")
	}
	if !d.NextCheck.IsZero() && !d.NextCheck.After(now) {
		t.Errorf("the next check is at %s, which is not after %s", d.NextCheck, now)
	}
}

// outcome is a decision in a line: install, move to or keep a template, or hold for a reason.
func outcome(installed catalog.Installed, d catalog.Decision) string {
	var line string
	switch {
	case d.Hold != nil && d.Hold.Candidate != nil:
		line = fmt.Sprintf("hold %s at %s", d.Hold.Reason, d.Hold.Candidate.Template)
	case d.Hold != nil:
		line = fmt.Sprintf("hold %s", d.Hold.Reason)
	case installed.Current == nil:
		line = "install " + d.Target.Template
	case d.Changed:
		line = "move " + d.Target.Template
	default:
		line = "keep " + d.Target.Template
	}
	if d.Catalog == modulesv1.CatalogLocal {
		line += " locally"
	}
	var warnings []string
	for _, warning := range d.Warnings {
		warnings = append(warnings, warning.Reason)
	}
	if len(warnings) > 0 {
		line += " warn " + strings.Join(warnings, ",")
	}
	return line
}

// of is a ready release of module foo for everyone, with content of its own.
func of(version string, edits ...func(*catalog.Release)) catalog.Release {
	return edit(catalog.Release{
		Template: "foo-" + version, Module: "foo", Version: version, Digest: "sha256:" + version, Readiness: catalog.Ready,
		Since: now.Add(-time.Hour),
	}, edits...)
}

// in is a ready release in a channel, with the content of its version.
func in(channel, version string, edits ...func(*catalog.Release)) catalog.Release {
	return of(version, slices.Concat([]func(*catalog.Release){named("foo-" + channel), claim(channel)}, edits)...)
}

func edit[T any](value T, edits ...func(*T)) T {
	for _, edit := range edits {
		edit(&value)
	}
	return value
}

func named(template string) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Template = template }
}

// bar makes it a release of another module.
func bar(r *catalog.Release) {
	r.Module, r.Template = "bar", strings.Replace(r.Template, "foo", "bar", 1)
}

func claim(channel string) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Channel = channel }
}

func content(digest string) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Digest = digest }
}

func later(d time.Duration) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Since = r.Since.Add(d) }
}

func until(at time.Time) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Support.Until = at }
}

func readiness(state catalog.Readiness) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Readiness = state }
}

func support(state modulesv1.SupportState) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Support.State = state }
}

var (
	idle        = readiness(catalog.Idle)
	broken      = readiness(catalog.NotReady)
	deprecated  = support(modulesv1.SupportDeprecated)
	withdrawn   = support(modulesv1.SupportWithdrawn)
	deleting    = func(r *catalog.Release) { r.Deleting = true }
	unversioned = func(r *catalog.Release) { r.Version = "" }
)

func list(releases ...catalog.Release) []catalog.Release { return releases }

// everyone are plain releases of foo, one for each version.
func everyone(versions ...string) []catalog.Release {
	var releases []catalog.Release
	for _, version := range versions {
		releases = append(releases, of(version))
	}
	return releases
}

// system is an index in which only the system catalogue has something.
func system(releases []catalog.Release, modules ...catalog.Module) catalog.Index {
	return catalog.Index{System: catalog.New(systemNamespace, releases, modules)}
}

// both is an index with a local catalogue too.
func both(local, system []catalog.Release) catalog.Index {
	return catalog.Index{Local: catalog.New(localNamespace, local, nil), System: catalog.New(systemNamespace, system, nil)}
}

// foo is the module's object with the channels given as name=version.
func foo(channels ...string) catalog.Module {
	module := catalog.Module{Name: "foo"}
	for _, channel := range channels {
		name, version, _ := strings.Cut(channel, "=")
		module.Channels = append(module.Channels, modulesv1.Channel{Name: name, Version: version})
	}
	return module
}

func suspend(channel string) func(*catalog.Module) {
	return editChannel(channel, func(c *modulesv1.Channel) { c.Suspended, c.Message = true, "CVE triage" })
}

func oneWay(channel string) func(*catalog.Module) {
	return editChannel(channel, func(c *modulesv1.Channel) { c.OneWay = true })
}

func editChannel(name string, change func(*modulesv1.Channel)) func(*catalog.Module) {
	return func(m *catalog.Module) {
		for i := range m.Channels {
			if m.Channels[i].Name == name {
				change(&m.Channels[i])
			}
		}
	}
}

func byDefault(channel string) func(*catalog.Module) {
	return func(m *catalog.Module) { m.DefaultChannel = channel }
}

func admitting(namespaces ...string) func(*catalog.Module) {
	return func(m *catalog.Module) {
		m.Admits = func(namespace string) bool { return slices.Contains(namespaces, namespace) }
	}
}

// ask is a request for module foo.
func ask(edits ...func(*catalog.Request)) catalog.Request {
	return edit(catalog.Request{Namespace: localNamespace, Name: "foo"}, edits...)
}

func version(v string, edits ...func(*catalog.Request)) catalog.Request {
	return edit(ask(func(r *catalog.Request) { r.Version = v }), edits...)
}

func channel(c string, edits ...func(*catalog.Request)) catalog.Request {
	return edit(ask(func(r *catalog.Request) { r.Channel = c }), edits...)
}

func within(text string, edits ...func(*catalog.Request)) catalog.Request {
	return edit(ask(func(r *catalog.Request) { r.Range = text }), edits...)
}

func latest(edits ...func(*catalog.Request)) catalog.Request {
	return edit(ask(func(r *catalog.Request) { r.Latest = true }), edits...)
}

func template(name string, edits ...func(*catalog.Request)) catalog.Request {
	return edit(catalog.Request{Namespace: localNamespace, Template: name}, edits...)
}

func from(c modulesv1.Catalog) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Catalog = c }
}

func prereleases(identifiers ...string) func(*catalog.Request) {
	return func(r *catalog.Request) {
		r.Prereleases = modulesv1.Prereleases{Policy: modulesv1.PrereleasesListed, Identifiers: identifiers}
		if len(identifiers) == 0 {
			r.Prereleases.Policy = modulesv1.PrereleasesInclude
		}
	}
}

func mode(m modulesv1.UpgradeMode) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Upgrade.Mode = m }
}

func step(s modulesv1.UpgradeStep) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Upgrade.MaxStep = s }
}

func allow(v string) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Upgrade.AllowDowngradeTo = v }
}

func approve(digest string) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Upgrade.Approve = digest }
}

// nothing is installed yet.
var nothing catalog.Installed

// runs is what is installed, from the system catalogue.
func runs(version string, edits ...func(*catalog.Installed)) catalog.Installed {
	return edit(catalog.Installed{
		Module: "foo", Catalog: modulesv1.CatalogSystem,
		Current: &modulesv1.Release{Template: "foo-" + version, Version: version, Content: "sha256:" + version, Namespace: systemNamespace},
	}, edits...)
}

func via(channel string) func(*catalog.Installed) {
	return func(i *catalog.Installed) { i.Current.Channel = channel }
}

func holding(digest string) func(*catalog.Installed) {
	return func(i *catalog.Installed) { i.Current.Content = digest }
}

func after(version string) func(*catalog.Installed) {
	return func(i *catalog.Installed) {
		i.Previous = &modulesv1.Release{Template: "foo-" + version, Version: version, Content: "sha256:" + version}
	}
}

// began is an attempt at a release that has not come to its end.
func began(version string, edits ...func(*modulesv1.Release)) func(*catalog.Installed) {
	return func(i *catalog.Installed) {
		i.Module, i.Catalog = "foo", modulesv1.CatalogSystem
		i.Attempted = new(edit(modulesv1.Release{Template: "foo-" + version, Version: version, Content: "sha256:" + version, Namespace: systemNamespace}, edits...))
	}
}

func planned(version, digest string) func(*catalog.Installed) {
	return func(i *catalog.Installed) {
		i.Plan = &catalog.Plan{Version: version, Content: "sha256:" + version, Digest: digest}
	}
}

func chosen(c modulesv1.Catalog) func(*catalog.Installed) {
	return func(i *catalog.Installed) {
		i.Module, i.Catalog = "foo", c
		if i.Current != nil && c == modulesv1.CatalogLocal {
			i.Current.Namespace = localNamespace
		}
	}
}

// rechosen is what is known of an installation whose request names another catalogue than it did.
func rechosen(i *catalog.Installed) { i.Catalog = "" }

// unversionedRuns is an installation of a release without a version.
func unversionedRuns(digest string) catalog.Installed {
	return catalog.Installed{
		Module: "foo", Catalog: modulesv1.CatalogSystem, Current: &modulesv1.Release{Template: "foo-regular", Content: digest, Channel: "regular"},
	}
}
