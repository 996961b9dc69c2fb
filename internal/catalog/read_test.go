package catalog_test

import (
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

func TestRequestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	shelf := system(everyone("1.0.0", "1.2.0", "2.0.0"))
	set := func(f func(*catalog.Request)) catalog.Request { return ask(f) }
	run(t, map[string]example{
		"channel and version":  {"two selectors are one too many", version("1.0.0", func(r *catalog.Request) { r.Channel = "fast" }), nothing, shelf, "hold AmbiguousSelection"},
		"version and range":    {"two selectors are one too many", version("1.0.0", func(r *catalog.Request) { r.Range = "*" }), nothing, shelf, "hold AmbiguousSelection"},
		"range and latest":     {"two selectors are one too many", within("*", func(r *catalog.Request) { r.Latest = true }), nothing, shelf, "hold AmbiguousSelection"},
		"template and latest":  {"a template is a selector", template("foo-1.0.0", func(r *catalog.Request) { r.Latest = true }), nothing, shelf, "hold AmbiguousSelection"},
		"template and version": {"even when both lead to the same", template("foo-1.0.0", func(r *catalog.Request) { r.Version = "1.0.0" }), nothing, shelf, "hold AmbiguousSelection"},
		"nothing":              {"a request names something", catalog.Request{}, nothing, shelf, "hold InvalidRequest"},
		"only a version":       {"a version of what", catalog.Request{Version: "1.0.0"}, nothing, shelf, "hold InvalidRequest"},
		"catalog":              {"values are known or refused", set(from("Global")), nothing, shelf, "hold InvalidRequest"},
		"mode":                 {"values are known or refused", set(mode("Sometimes")), nothing, shelf, "hold InvalidRequest"},
		"step":                 {"values are known or refused", set(step("Huge")), nothing, shelf, "hold InvalidRequest"},
		"installed":            {"a malformed request stalls and keeps what is installed", set(step("Huge")), runs("1.0.0"), shelf, "hold InvalidRequest"},

		"short version":      {"a version has three numbers", version("1.2"), nothing, shelf, "hold InvalidVersion"},
		"version with v":     {"a version is no tag", version("v1.2.0"), nothing, shelf, "hold InvalidVersion"},
		"channel as version": {"nor a channel", version("fast"), nothing, shelf, "hold InvalidVersion"},
		"latest as version":  {"nor a word", version("latest"), nothing, shelf, "hold InvalidVersion"},
		"range as version":   {"nor a range", version("1.2.x"), nothing, shelf, "hold InvalidVersion"},
		"date as version":    {"nor a date with leading zeros", version("2025.07.03"), nothing, shelf, "hold InvalidVersion"},
		"number as version":  {"nor a commit that happens to be digits", version("12345678"), nothing, shelf, "hold InvalidVersion"},
		"consent with v":     {"consent names an exact version", latest(allow("v1.0.0")), nothing, shelf, "hold InvalidVersion"},
		"consent with range": {"and no range", latest(allow("1.x")), runs("2.0.0"), shelf, "hold InvalidVersion"},
		"build metadata":     {"which has no say in finding a release", version("1.2.0+build.7"), nothing, shelf, "install foo-1.2.0"},

		"bare short range":     {"an exact version to some, a range to others", within("1.2"), nothing, shelf, "hold InvalidRange"},
		"bare major":           {"an exact version to some, a range to others", within("1"), nothing, shelf, "hold InvalidRange"},
		"short comparison":     {"comparisons have three numbers", within(">=1.2"), nothing, shelf, "hold InvalidRange"},
		"span":                 {"spans are written as comparisons", within("1.0.0 - 2.0.0"), nothing, shelf, "hold InvalidRange"},
		"pessimistic operator": {"foreign operators are refused", within("~>1.0.0"), nothing, shelf, "hold InvalidRange"},
		"reversed operator":    {"and misspelt ones", within("=>1.0.0"), nothing, shelf, "hold InvalidRange"},
		"range with v":         {"no tags in ranges", within(">=v1.0.0"), nothing, shelf, "hold InvalidRange"},
		"word":                 {"no words", within("latest"), nothing, shelf, "hold InvalidRange"},
		"empty alternative":    {"no empty alternatives", within("1.x ||"), nothing, shelf, "hold InvalidRange"},
		"blank":                {"no blank range", within(" "), nothing, shelf, "hold InvalidRange"},
		"full version":         {"a full version alone is unambiguous", within("1.2.0"), nothing, shelf, "install foo-1.2.0"},
		"wildcard":             {"a wildcard says what is free", within("1.x"), nothing, shelf, "install foo-1.2.0"},
		"star":                 {"everything", within("*"), nothing, shelf, "install foo-2.0.0"},
		"and by space":         {"all conditions hold", within(">=1.0.0 <2.0.0"), nothing, shelf, "install foo-1.2.0"},
		"and by comma":         {"all conditions hold", within(">=1.0.0, <2.0.0"), nothing, shelf, "install foo-1.2.0"},
		"or":                   {"one alternative holds", within("1.0.x || >=3.0.0"), nothing, shelf, "install foo-1.0.0"},
		"not":                  {"one is left out", within("1.x !=1.2.0"), nothing, shelf, "install foo-1.0.0"},
		"tilde":                {"the third number is free", within("~1.2.0"), nothing, shelf, "install foo-1.2.0"},
		"caret":                {"the same interface", within("^1.0.0"), nothing, shelf, "install foo-1.2.0"},
		"nothing in it":        {"a range may be empty", within(">=3.0.0"), nothing, shelf, "hold NoMatchingRelease"},
	})
}

func TestHintSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	shelf := system(append(everyone("1.0.0", "2.0.0"), in("experimental", "2.2.0")), foo("stable=1.0.0", "lts=0.9.0"))
	cases := map[string]struct {
		reason    string
		request   catalog.Request
		installed catalog.Installed
		want      []string
	}{
		"bare range":    {"both readings are offered", within("1.2"), nothing, []string{"1.2.x", "~1.2.0"}},
		"leading v":     {"the version is right but for the letter", version("v1.0.0"), nothing, []string{"without the 'v'"}},
		"downgrade":     {"the field and its value", version("1.0.0"), runs("2.0.0"), []string{"allowDowngradeTo to 1.0.0"}},
		"channel":       {"the channels that there are", channel("stabel"), nothing, []string{"experimental", "lts", "stable"}},
		"hidden":        {"where the version is", version("2.2.0"), nothing, []string{"channel experimental"}},
		"missing":       {"what the pointer says", channel("lts"), nothing, []string{`"0.9.0"`}},
		"two selectors": {"which two", version("1.0.0", func(r *catalog.Request) { r.Channel = "stable" }), nothing, []string{"channel/stable", "version/1.0.0"}},
		"funnel":        {"where the releases went", within(">=3.0.0"), nothing, []string{"offered 2", "ready 2", "range 0"}},
		"module":        {"where the module is", ask(from(modulesv1.CatalogLocal)), nothing, []string{"System"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := catalog.Resolve(tc.request, tc.installed, shelf, now)
			if d.Hold == nil {
				t.Fatalf("%s: no hold but %s", tc.reason, d.Target.Template)
			}
			for _, want := range tc.want {
				if !strings.Contains(d.Hold.Message, want) {
					t.Errorf("%s: %q does not say %q", tc.reason, d.Hold.Message, want)
				}
			}
		})
	}
}
