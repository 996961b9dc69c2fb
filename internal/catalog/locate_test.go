package catalog_test

import (
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

func TestCatalogueIsLocated(t *testing.T) {
	t.Parallel()
	platform := everyone("1.0.0", "2.0.0")
	local := catalog.Index{
		Local:  catalog.New(localNamespace, nil, []catalog.Module{{Name: "foo"}}),
		System: catalog.New(systemNamespace, platform, nil),
	}
	own := catalog.New(systemNamespace, platform, nil)
	run(t, map[string]example{
		"system":        {"without a local module the system's is used", latest(), nothing, both(nil, platform), "install foo-2.0.0"},
		"local":         {"a local module comes first", latest(), nothing, both(everyone("1.5.0"), platform), "install foo-1.5.0 locally"},
		"never merged":  {"a version that only the system has is shadowed", version("2.0.0"), nothing, both(everyone("1.5.0"), platform), "hold VersionNotFound locally"},
		"not injected":  {"the highest version is not mixed from two catalogues", latest(), nothing, both(everyone("0.1.0"), platform), "install foo-0.1.0 locally"},
		"other module":  {"another local module shadows nothing", latest(), nothing, both(list(of("9.0.0", bar)), platform), "install foo-2.0.0"},
		"module alone":  {"a local module object shadows even without releases", latest(), nothing, local, "hold NoMatchingRelease locally"},
		"broken local":  {"a local release that is not ready does not shadow", latest(), nothing, both(list(of("1.5.0", broken)), platform), "install foo-2.0.0"},
		"idle local":    {"a local release that was never fetched does", latest(), nothing, both(list(of("1.5.0", idle)), platform), "install foo-1.5.0 locally"},
		"leaving local": {"a local release that is being deleted does not", latest(), nothing, both(list(of("1.5.0", deleting)), platform), "install foo-2.0.0"},
		"withdrawn local": {
			"a withdrawn local release still is the local module", latest(), nothing, both(list(of("1.5.0", withdrawn)), platform),
			"hold ReleaseWithdrawn at foo-1.5.0 locally",
		},

		"named local":    {"an explicit catalogue is the one", latest(from(modulesv1.CatalogLocal)), nothing, both(everyone("1.5.0"), platform), "install foo-1.5.0 locally"},
		"named system":   {"an explicit catalogue beats shadowing", latest(from(modulesv1.CatalogSystem)), nothing, both(everyone("1.5.0"), platform), "install foo-2.0.0"},
		"named, missing": {"an explicit catalogue is not left", latest(from(modulesv1.CatalogLocal)), nothing, both(nil, platform), "hold ModuleNotFound locally"},
		"named, gone":    {"nor when the other has it", latest(from(modulesv1.CatalogSystem)), nothing, both(platform, nil), "hold ModuleNotFound"},
		"nowhere":        {"what nobody has is not found", latest(), nothing, both(nil, nil), "hold ModuleNotFound"},
		"no catalogues":  {"an empty index is no reason to fail", latest(), nothing, catalog.Index{}, "hold ModuleNotFound"},
		"auto by name":   {"Auto is the same as nothing", latest(from(modulesv1.CatalogAuto)), nothing, both(everyone("1.5.0"), platform), "install foo-1.5.0 locally"},

		"sticky system": {"a local module that appears later changes nothing", latest(), runs("2.0.0"), both(everyone("9.0.0"), platform), "keep foo-2.0.0"},
		"sticky local": {
			"a local choice stays local", latest(), runs("1.5.0", chosen(modulesv1.CatalogLocal)),
			both(everyone("1.5.0"), platform), "keep foo-1.5.0 locally",
		},
		"sticky, emptied": {
			"a local module that disappears is not replaced by the system's", latest(), runs("1.5.0", chosen(modulesv1.CatalogLocal)),
			both(nil, platform), "hold ModuleNotFound locally",
		},
		"sticky, nothing installed": {
			"the choice holds before anything is installed", latest(),
			catalog.Installed{Module: "foo", Catalog: modulesv1.CatalogSystem},
			both(everyone("9.0.0"), platform), "install foo-2.0.0",
		},
		"sticky for its module": {
			"the choice was for another module", latest(),
			catalog.Installed{Module: "bar", Catalog: modulesv1.CatalogSystem},
			both(everyone("9.0.0"), platform), "install foo-9.0.0 locally",
		},
		"switched to local": {"an edit switches", latest(from(modulesv1.CatalogLocal)), runs("2.0.0"), both(everyone("9.0.0"), platform), "move foo-9.0.0 locally"},
		"switched, older": {
			"switching is no way around the direction", latest(from(modulesv1.CatalogLocal)), runs("2.0.0"), both(everyone("1.5.0"), platform),
			"hold DowngradeBlocked at foo-1.5.0 locally",
		},
		"switched, clash": {
			"the same version of another catalogue has other content", version("2.0.0", from(modulesv1.CatalogLocal)), runs("2.0.0"),
			both(list(of("2.0.0", content("sha256:mine"))), platform), "hold Conflict at foo-2.0.0 locally",
		},
		"switched, same": {
			"the same content of another catalogue is the same", version("2.0.0", from(modulesv1.CatalogLocal)), runs("2.0.0"),
			both(everyone("2.0.0"), platform), "keep foo-2.0.0 locally",
		},
		"own namespace": {"in the system's namespace both are one", latest(), nothing, catalog.Index{Local: own, System: own}, "install foo-2.0.0 locally"},

		"template, system":     {"a template is found in the system catalogue", template("foo-1.0.0"), nothing, both(nil, platform), "install foo-1.0.0"},
		"template, local":      {"and in the local one first", template("foo-1.0.0"), nothing, both(everyone("1.0.0"), platform), "install foo-1.0.0 locally"},
		"template, shadowed":   {"a local module shadows the system's templates too", template("foo-2.0.0"), nothing, both(everyone("1.0.0"), platform), "hold TemplateNotFound locally"},
		"template, explicit":   {"unless the catalogue is named", template("foo-2.0.0", from(modulesv1.CatalogSystem)), nothing, both(everyone("1.0.0"), platform), "install foo-2.0.0"},
		"template, unshadowed": {"another local module does not", template("foo-2.0.0"), nothing, both(list(of("1.0.0", bar)), platform), "install foo-2.0.0"},
		"template, broken": {
			"a local template of that name is the one that is meant", template("foo-2.0.0"), nothing, both(list(of("2.0.0", broken)), platform),
			"hold ReleaseNotReady at foo-2.0.0 locally",
		},
		"template, sticky": {"the choice holds for templates too", template("foo-2.0.0"), runs("1.0.0"), both(everyone("2.0.0"), platform), "move foo-2.0.0"},
		"template, sticky without current": {
			"and before anything is installed", template("foo-2.0.0"),
			catalog.Installed{Module: "foo", Catalog: modulesv1.CatalogSystem},
			both(list(of("2.0.0", content("sha256:mine"))), platform), "install foo-2.0.0",
		},
		"template, sticky for its module": {
			"and for the template's module alone", template("bar-1.0.0"),
			catalog.Installed{Module: "foo", Catalog: modulesv1.CatalogSystem},
			both(list(of("1.0.0", bar)), platform), "install bar-1.0.0 locally",
		},
		"template, sticky and gone": {
			"a template that left is not looked for elsewhere", template("foo-1.0.0"), runs("1.0.0", chosen(modulesv1.CatalogLocal)),
			both(nil, platform), "hold TemplateNotFound locally",
		},
		"template, sticky and never there": {
			"nor one that nobody has", template("foo-7.0.0"),
			catalog.Installed{Module: "foo", Catalog: modulesv1.CatalogLocal},
			both(nil, platform), "hold TemplateNotFound locally",
		},
		"template, nowhere":      {"what nobody has is not found", template("foo-9.0.0"), nothing, both(nil, platform), "hold TemplateNotFound"},
		"template, name agrees":  {"a name beside the template has to agree", template("foo-1.0.0", func(r *catalog.Request) { r.Name = "foo" }), nothing, both(nil, platform), "install foo-1.0.0"},
		"template, name differs": {"and is refused when it does not", template("foo-1.0.0", func(r *catalog.Request) { r.Name = "bar" }), nothing, both(nil, platform), "hold ModuleMismatch"},
		"template, no module": {
			"a template that does not say its module belongs to none", template("foo-1.0.0"), nothing,
			system(list(of("1.0.0", func(r *catalog.Release) { r.Module = "" }))), "hold ModuleUnknown",
		},
		"no module, by name": {
			"and is no candidate", latest(), nothing,
			system(append(everyone("1.0.0"), of("2.0.0", func(r *catalog.Release) { r.Module = "" }))), "install foo-1.0.0",
		},
		"template of another module": {"an installation is for one module", template("bar-1.0.0"), runs("1.0.0"), system(append(platform, of("1.0.0", bar))), "hold ModuleMismatch"},
		"another module":             {"by name too", ask(func(r *catalog.Request) { r.Name = "bar" }), runs("1.0.0"), system(append(platform, of("1.0.0", bar))), "hold ModuleMismatch"},
		"template, name unheard of":  {"a name that no template bears out has the last word", template("foo-7.0.0", func(r *catalog.Request) { r.Name = "bar" }), nothing, both(nil, platform), "hold TemplateNotFound"},
		"another module, nothing installed": {
			"before the first install nothing is in the way", ask(func(r *catalog.Request) { r.Name = "bar" }),
			catalog.Installed{Module: "foo", Catalog: modulesv1.CatalogSystem},
			system(append(platform, of("1.0.0", bar))), "install bar-1.0.0",
		},
	})
}

// TestDecisionNamesTheModule: also where nothing was found, because that is what the answer depends on.
func TestDecisionNamesTheModule(t *testing.T) {
	t.Parallel()
	platform := everyone("1.0.0", "2.0.0")
	for name, tc := range map[string]struct {
		reason    string
		request   catalog.Request
		installed catalog.Installed
		index     catalog.Index
		want      string
	}{
		"malformed": {"a request that cannot be read names one", version("three"), nothing, system(platform), "foo"},
		"found":     {"what is found has its module's name", template("foo-1.0.0"), nothing, system(platform), "foo"},
		"not found": {"what nobody has was looked for all the same", latest(), nothing, both(nil, nil), "foo"},
		"shadowed": {
			"a template that a local module shadows comes back when that goes", template("foo-2.0.0"), nothing,
			both(everyone("1.0.0"), platform), "foo",
		},
		"elsewhere": {"a template of the other catalogue says its module", template("foo-2.0.0", from(modulesv1.CatalogLocal)), nothing, both(nil, platform), "foo"},
		"gone":      {"what is installed is a release of its module", template("foo-9.0.0"), runs("1.0.0"), system(platform), "foo"},
		"unknown":   {"a template that nobody has says nothing", template("foo-9.0.0"), nothing, system(platform), ""},
		"no module": {
			"nor does one that is of no module", template("foo-1.0.0"), nothing,
			system(list(of("1.0.0", func(r *catalog.Release) { r.Module = "" }))), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := catalog.Resolve(tc.request, tc.installed, tc.index, now).Module; got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
