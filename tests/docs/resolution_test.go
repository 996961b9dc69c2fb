package docs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/revision"
)

const (
	resolutionPage = "docs/module-resolution.md"
	ours, theirs   = "default", "sluice-system"
)

// choice is what an example on the page is about.
type choice struct {
	request       catalog.Request
	installed     catalog.Installed
	system, local []catalog.Release
	module        *catalog.Module
	localModule   bool
}

// TestResolutionExamplesHold: every example of the page is what the resolver answers, and there is one for each row.
func TestResolutionExamplesHold(t *testing.T) {
	t.Parallel()
	documented := map[string]string{}
	for _, table := range page(t, resolutionPage).Tables() {
		last := len(table.Header) - 1
		if table.Header[last] != "Answer" {
			continue
		}
		for _, row := range table.Rows {
			key := strings.Join(row[:last], " | ")
			if _, twice := documented[key]; twice {
				t.Errorf("example %q has two rows", key)
			}
			documented[key] = row[last]
		}
	}
	examples := map[string]choice{}
	for _, part := range []map[string]choice{storyExamples(), catalogueExamples(), filterExamples(), directionExamples()} {
		maps.Copy(examples, part)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(examples)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("examples (-tested +documented):\n%s", diff)
	}
	for key, example := range examples {
		decision := catalog.Resolve(example.request, example.installed, example.index(), time.Unix(1e9, 0))
		if got := documented[key]; !answers(decision, got) {
			t.Errorf("%s: the page says %q, the resolver target %+v, hold %+v", key, got, decision.Target, decision.Hold)
		}
	}
}

// answers says whether the first words of the answer are the decision: a version, a template, or a hold's reason.
func answers(decision catalog.Decision, answer string) bool {
	words := strings.FieldsFunc(answer, func(r rune) bool { return strings.ContainsRune(" ,;:`", r) })
	if decision.Hold != nil {
		return len(words) > 1 && words[0] == "held" && words[1] == decision.Hold.Reason
	}
	return len(words) > 0 && (words[0] == decision.Target.Version || words[0] == decision.Target.Template)
}

func (c choice) index() catalog.Index {
	var modules, locals []catalog.Module
	if c.module != nil {
		modules = append(modules, *c.module)
	}
	if c.localModule {
		locals = append(locals, catalog.Module{Name: "foo"})
	}
	return catalog.Index{Local: catalog.New(ours, c.local, locals), System: catalog.New(theirs, c.system, modules)}
}

func foo(version string, edits ...func(*catalog.Release)) catalog.Release {
	release := catalog.Release{
		Template: "foo-" + version, Module: "foo", Version: version, Digest: "content of " + version, Readiness: catalog.Ready,
	}
	for _, edit := range edits {
		edit(&release)
	}
	return release
}

func inChannel(name string) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Channel, r.Template = name, "foo-"+name }
}

func state(s modulesv1.SupportState) func(*catalog.Release) {
	return func(r *catalog.Release) { r.Support.State = s }
}

func broken(r *catalog.Release) { r.Readiness = catalog.NotReady }

func versions(names ...string) []catalog.Release {
	releases := make([]catalog.Release, 0, len(names))
	for _, name := range names {
		releases = append(releases, foo(name))
	}
	return releases
}

func want(edits ...func(*catalog.Request)) catalog.Request {
	request := catalog.Request{Namespace: ours, Name: "foo"}
	for _, edit := range edits {
		edit(&request)
	}
	return request
}

func latest(r *catalog.Request)   { r.Latest = true }
func included(r *catalog.Request) { r.Prereleases.Policy = modulesv1.PrereleasesInclude }

func byVersion(v string) func(*catalog.Request) { return func(r *catalog.Request) { r.Version = v } }

func byChannel(c string) func(*catalog.Request) { return func(r *catalog.Request) { r.Channel = c } }

func byRange(text string) func(*catalog.Request) { return func(r *catalog.Request) { r.Range = text } }

func allowing(v string) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Upgrade.AllowDowngradeTo = v }
}

func upgrading(mode modulesv1.UpgradeMode, step modulesv1.UpgradeStep) func(*catalog.Request) {
	return func(r *catalog.Request) { r.Upgrade.Mode, r.Upgrade.MaxStep = mode, step }
}

func runs(version, channel, before string) catalog.Installed {
	of := func(version string) *modulesv1.Release {
		return &modulesv1.Release{Template: "foo-" + version, Version: version, Content: "content of " + version}
	}
	installed := catalog.Installed{Module: "foo", Catalog: modulesv1.CatalogSystem, Current: of(version)}
	installed.Current.Channel, installed.Current.Namespace = channel, theirs
	if before != "" {
		installed.Previous = of(before)
	}
	return installed
}

func storyExamples() map[string]choice {
	five := append(versions("1.0.0", "2.0.0"),
		foo("1.0.0", inChannel("regular")), foo("2.0.0", inChannel("fast")), foo("2.2.0", inChannel("experimental")))
	named := catalog.Request{Namespace: ours, Template: "foo-experimental"}
	return map[string]choice{
		"`channel: regular`":              {request: want(byChannel("regular")), system: five},
		"`channel: fast`":                 {request: want(byChannel("fast")), system: five},
		"`channel: experimental`":         {request: want(byChannel("experimental")), system: five},
		"`version: 1.0.0`":                {request: want(byVersion("1.0.0")), system: five},
		"`version: 2.2.0`":                {request: want(byVersion("2.2.0")), system: five},
		"`latest`":                        {request: want(latest), system: five},
		"`range: \">=2.0.0 <3.0.0\"`":     {request: want(byRange(">=2.0.0 <3.0.0")), system: five},
		"`templateRef: foo-experimental`": {request: named, system: five},
		"nothing":                         {request: want(), system: five},
	}
}

func catalogueExamples() map[string]choice {
	system := versions("1.0.0", "2.0.0")
	mine := want(latest, func(r *catalog.Request) { r.Catalog = modulesv1.CatalogLocal })
	return map[string]choice{
		"empty | `latest`":                                {request: want(latest), system: system},
		"`foo` `1.5.0` | `latest`":                        {request: want(latest), system: system, local: versions("1.5.0")},
		"`foo` `1.5.0` | `version: 2.0.0`":                {request: want(byVersion("2.0.0")), system: system, local: versions("1.5.0")},
		"`foo` `1.5.0`, broken | `latest`":                {request: want(latest), system: system, local: []catalog.Release{foo("1.5.0", broken)}},
		"`foo` `1.5.0`, withdrawn | `latest`":             {request: want(latest), system: system, local: []catalog.Release{foo("1.5.0", state(modulesv1.SupportWithdrawn))}},
		"a Module `foo`, no releases | `latest`":          {request: want(latest), system: system, localModule: true},
		"the same, edited to `catalog: Local` | `latest`": {request: mine, installed: runs("2.0.0", "", ""), system: system, local: versions("9.0.0")},
		"`foo` `9.0.0`, added after `2.0.0` of the system was installed | `latest`": {
			request: want(latest), installed: runs("2.0.0", "", ""), system: system, local: versions("9.0.0"),
		},
	}
}

func filterExamples() map[string]choice {
	shelf := versions("1.0.0", "1.1.0", "2.0.0-rc.1")
	two := func(edit func(*catalog.Release)) []catalog.Release {
		return []catalog.Release{foo("1.0.0"), foo("1.1.0", edit)}
	}
	deprecated := state(modulesv1.SupportDeprecated)
	return map[string]choice{
		"1.0.0, 1.1.0, 2.0.0-rc.1 | `latest`":                   {request: want(latest), system: shelf},
		"the same | `latest`, `prereleases: {policy: Include}`": {request: want(latest, included), system: shelf},
		"the same | `range: \">=1.0.0 <2.0.0\"`, `Include`":     {request: want(byRange(">=1.0.0 <2.0.0"), included), system: shelf},
		"the same | `version: 2.0.0-rc.1`":                      {request: want(byVersion("2.0.0-rc.1")), system: shelf},
		"1.0.0, 1.1.0 deprecated | `latest`":                    {request: want(latest), system: two(deprecated)},
		"1.1.0 deprecated | `latest`":                           {request: want(latest), system: []catalog.Release{foo("1.1.0", deprecated)}},
		"1.0.0, 1.1.0 not ready | `latest`":                     {request: want(latest), system: two(broken)},
		"1.0.0, 1.1.0 not ready | `version: 1.1.0`":             {request: want(byVersion("1.1.0")), system: two(broken)},
		"1.0.0 installed, then withdrawn | `version: 1.0.0`": {
			request: want(byVersion("1.0.0")), installed: runs("1.0.0", "", ""),
			system: []catalog.Release{foo("1.0.0", state(modulesv1.SupportWithdrawn))},
		},
	}
}

func directionExamples() map[string]choice {
	regular := append(versions("2.0.0"), foo("1.0.0", inChannel("regular")))
	steps := versions("1.4.0", "1.5.0", "2.0.0")
	oneWay := &catalog.Module{Name: "foo", Channels: []modulesv1.Channel{{Name: "v2", Version: "2.0.0", OneWay: true}}}
	back := &catalog.Module{Name: "foo", Channels: []modulesv1.Channel{{Name: "regular", Version: "1.0.0"}}}
	minor := upgrading("", modulesv1.StepMinor)
	local := func(r *catalog.Request) { r.Catalog = modulesv1.CatalogLocal }
	begun := runs("1.0.0", "", "")
	begun.Attempted = runs("2.0.0", "regular", "").Current
	rechosen := runs("2.0.0", "v2", "")
	rechosen.Catalog = "" // It was chosen for another spec.
	return map[string]choice{
		"2.0.0 | `channel: regular` at 1.0.0":         {request: want(byChannel("regular")), installed: runs("2.0.0", "", ""), system: regular},
		"2.0.0 | the same, `allowDowngradeTo: 1.0.0`": {request: want(byChannel("regular"), allowing("1.0.0")), installed: runs("2.0.0", "", ""), system: regular},
		"2.0.0 | the same, `allowDowngradeTo: 1.5.0`": {request: want(byChannel("regular"), allowing("1.5.0")), installed: runs("2.0.0", "", ""), system: regular},
		"2.0.0, before it 1.0.0 | `version: 1.0.0`":   {request: want(byVersion("1.0.0")), installed: runs("2.0.0", "", "1.0.0"), system: versions("1.0.0", "2.0.0")},
		"2.0.0, before it 1.0.0 | `channel: regular`, whose pointer moved back to 1.0.0": {
			request: want(byChannel("regular")), installed: runs("2.0.0", "regular", "1.0.0"), system: versions("1.0.0", "2.0.0"), module: back,
		},
		"1.0.0, and 2.0.0 was begun | `channel: regular` at 1.0.0": {
			request: want(byChannel("regular")), installed: begun, system: versions("1.0.0", "2.0.0"), module: back,
		},
		"1.0.0, and 2.0.0 was begun | `version: 1.0.0`": {request: want(byVersion("1.0.0")), installed: begun, system: versions("1.0.0", "2.0.0")},
		"1.0.0, and 2.0.0 could not be had | `channel: regular`, moved back to 1.0.0": {
			request: want(byChannel("regular")), installed: runs("1.0.0", "regular", ""), system: versions("1.0.0", "2.0.0"), module: back,
		},
		"2.0.0 | `version: 2.0.0-rc.2`":                           {request: want(byVersion("2.0.0-rc.2")), installed: runs("2.0.0", "", ""), system: versions("2.0.0", "2.0.0-rc.2")},
		"2.0.0-rc.1 | `version: 2.0.0`":                           {request: want(byVersion("2.0.0")), installed: runs("2.0.0-rc.1", "", ""), system: versions("2.0.0", "2.0.0-rc.1")},
		"1.4.0 | `latest` with 1.5.0 and 2.0.0, `maxStep: Minor`": {request: want(latest, minor), installed: runs("1.4.0", "", ""), system: steps},
		"1.4.0 | `version: 2.0.0`, `maxStep: Minor`":              {request: want(byVersion("2.0.0"), minor), installed: runs("1.4.0", "", ""), system: steps},
		"1.4.0 | `version: 1.5.0`, `mode: Never`":                 {request: want(byVersion("1.5.0"), upgrading(modulesv1.UpgradeNever, "")), installed: runs("1.4.0", "", ""), system: steps},
		"1.4.0 | `version: 1.5.0`, `mode: Manual`":                {request: want(byVersion("1.5.0"), upgrading(modulesv1.UpgradeManual, "")), installed: runs("1.4.0", "", ""), system: steps},
		"2.0.0 by the one-way channel `v2` | `version: 2.1.0`": {
			request: want(byVersion("2.1.0")), installed: runs("2.0.0", "v2", ""), system: versions("2.0.0", "2.1.0"), module: oneWay,
		},
		"2.0.0 by the one-way channel `v2` of the system's catalogue | `channel: v2`, `catalog: Local`": {
			request: want(byChannel("v2"), local), installed: rechosen, system: versions("2.0.0"), module: oneWay,
			local: []catalog.Release{foo("2.1.0", func(r *catalog.Release) { r.Channel = "v2" })},
		},
	}
}

// TestRangesOfThePageAreRead: what the page says is refused is, and what it says to write instead is not.
func TestRangesOfThePageAreRead(t *testing.T) {
	t.Parallel()
	each := func(column string, want bool) {
		found := 0
		for _, table := range page(t, resolutionPage).Tables() {
			for _, cell := range table.Column(column) {
				for _, match := range span.FindAllStringSubmatch("`"+cell+"`", -1) {
					if strings.Trim(match[1], ", or") == "" {
						continue
					}
					found++
					if _, err := revision.ParseStrictRange(match[1]); (err == nil) != want {
						t.Errorf("column %s: %q: can be read: want %t, got %v", column, match[1], want, err)
					}
				}
			}
		}
		if found < 5 {
			t.Errorf("only %d ranges were found under %s", found, column)
		}
	}
	each("Refused", false)
	each("Write", true)
}
