package catalog_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/catalog"
)

func TestReleasesAreFiltered(t *testing.T) {
	t.Parallel()
	pre := everyone("1.0.0", "1.1.0-alpha.1", "1.1.0-beta.2", "1.1.0-rc.1", "1.1.0-rc1", "2.0.0-0")
	shared := func(edits ...func(*catalog.Module)) catalog.Index {
		return system(everyone("1.0.0", "2.0.0"), edit(foo("stable=1.0.0"), edits...))
	}
	clash := list(of("1.0.0"), of("1.0.0", named("foo-b"), content("sha256:other"), later(time.Minute)))
	tie := list(of("1.0.0"), of("1.0.0", named("foo-b"), content("sha256:other")))
	run(t, map[string]example{
		"not ready":            {"the next best is chosen", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", broken))), "install foo-1.0.0"},
		"readiness not said":   {"nothing is ready without saying so", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", readiness("")))), "install foo-1.0.0"},
		"idle":                 {"what nothing wanted yet can be chosen", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", idle))), "install foo-2.0.0"},
		"none ready":           {"nothing is chosen", latest(), nothing, system(list(of("1.0.0", broken))), "hold ReleaseNotReady at foo-1.0.0"},
		"version not ready":    {"a named one is waited for", version("2.0.0"), runs("1.0.0"), system(list(of("1.0.0"), of("2.0.0", broken))), "hold ReleaseNotReady at foo-2.0.0"},
		"template not ready":   {"a named one is waited for", template("foo-2.0.0"), nothing, system(list(of("2.0.0", broken))), "hold ReleaseNotReady at foo-2.0.0"},
		"installed, not ready": {"keeping what runs needs nothing", version("1.0.0"), runs("1.0.0"), system(list(of("1.0.0", broken))), "keep foo-1.0.0 warn ReleaseNotReady"},
		"latest, not ready":    {"nor does it when the highest is followed", latest(), runs("2.0.0"), system(list(of("1.0.0"), of("2.0.0", broken))), "keep foo-2.0.0 warn ReleaseNotReady"},

		"withdrawn":               {"the next best is chosen", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", withdrawn))), "install foo-1.0.0"},
		"withdrawn version":       {"a named one is refused", version("2.0.0"), nothing, system(list(of("2.0.0", withdrawn))), "hold ReleaseWithdrawn at foo-2.0.0"},
		"withdrawn template":      {"by name too", template("foo-2.0.0"), nothing, system(list(of("2.0.0", withdrawn))), "hold ReleaseWithdrawn at foo-2.0.0"},
		"withdrawn, installed":    {"what runs stays", version("2.0.0"), runs("2.0.0"), system(list(of("2.0.0", withdrawn))), "keep foo-2.0.0 warn ReleaseWithdrawn"},
		"withdrawn, latest":       {"and is not gone back from", latest(), runs("2.0.0"), system(list(of("1.0.0"), of("2.0.0", withdrawn))), "keep foo-2.0.0 warn ReleaseWithdrawn"},
		"withdrawn, left":         {"but for what is newer", latest(), runs("2.0.0"), system(list(of("2.0.0", withdrawn), of("2.0.1"))), "move foo-2.0.1"},
		"withdrawn, left for old": {"even when that is deprecated", latest(), runs("2.0.0"), system(list(of("2.0.0", withdrawn), of("2.0.1", deprecated))), "move foo-2.0.1 warn ReleaseDeprecated"},
		"withdrawn previous":      {"what was withdrawn is not gone back to", version("1.0.0"), runs("2.0.0", after("1.0.0")), system(list(of("1.0.0", withdrawn), of("2.0.0"))), "hold ReleaseWithdrawn at foo-1.0.0"},
		"withdrawn, consented":    {"not even with consent", version("1.0.0", allow("1.0.0")), runs("2.0.0"), system(list(of("1.0.0", withdrawn), of("2.0.0"))), "hold ReleaseWithdrawn at foo-1.0.0"},
		"deleting":                {"what is being deleted is not chosen", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", deleting))), "install foo-1.0.0"},
		"deleting version":        {"by version neither", version("2.0.0"), nothing, system(list(of("2.0.0", deleting))), "hold ReleaseWithdrawn at foo-2.0.0"},
		"deleting, installed":     {"and stays where it runs", version("2.0.0"), runs("2.0.0"), system(list(of("2.0.0", deleting))), "keep foo-2.0.0 warn ReleaseWithdrawn"},

		"admitted":     {"the module admits the namespace", latest(), nothing, shared(admitting(localNamespace)), "install foo-2.0.0"},
		"not admitted": {"and another not", latest(), nothing, shared(admitting("team-b")), "hold ConsumerNotAllowed"},
		"by version":   {"whatever is asked for", version("1.0.0"), nothing, shared(admitting()), "hold ConsumerNotAllowed"},
		"by channel":   {"whatever is asked for", channel("stable"), nothing, shared(admitting()), "hold ConsumerNotAllowed"},
		"by template":  {"whatever is asked for", template("foo-1.0.0"), nothing, shared(admitting()), "hold ConsumerNotAllowed"},
		"no longer":    {"losing access takes nothing away", latest(), runs("1.0.0"), shared(admitting()), "hold ConsumerNotAllowed"},
		"not admitted, not ready": {
			"for whom a module is not, nothing of it is fetched or kept", version("3.0.0"), nothing,
			system(list(of("3.0.0", broken)), edit(foo(), admitting())), "hold ReleaseNotReady",
		},
		"not admitted, suspended": {
			"not even what a stopped channel points to", channel("stable"), nothing,
			system(everyone("1.0.0"), edit(foo("stable=1.0.0"), suspend("stable"), admitting())), "hold ChannelSuspended",
		},
		"system's own": {"the system's namespace is its own", latest(func(r *catalog.Request) { r.Namespace = systemNamespace }), nothing, shared(admitting()), "install foo-2.0.0"},
		"local is for all": {
			"who may use the local catalogue is not the module's to say", latest(), nothing,
			catalog.Index{Local: catalog.New(localNamespace, everyone("1.0.0"), []catalog.Module{edit(foo(), admitting())})},
			"install foo-1.0.0 locally",
		},

		"no prereleases":       {"left out unless asked for", latest(), nothing, system(pre), "install foo-1.0.0"},
		"all prereleases":      {"all of them", latest(prereleases()), nothing, system(pre), "install foo-2.0.0-0"},
		"rc":                   {"those whose first identifier is listed", latest(prereleases("rc")), nothing, system(pre), "install foo-1.1.0-rc.1"},
		"rc1":                  {"identifiers are whole", latest(prereleases("rc1")), nothing, system(pre), "install foo-1.1.0-rc1"},
		"alpha or beta":        {"several may be listed", latest(prereleases("alpha", "beta")), nothing, system(pre), "install foo-1.1.0-beta.2"},
		"number":               {"a number is an identifier", latest(prereleases("0")), nothing, system(pre), "install foo-2.0.0-0"},
		"unknown identifier":   {"one that nothing has changes nothing", latest(prereleases("dev")), nothing, system(pre), "install foo-1.0.0"},
		"only prereleases":     {"nothing is chosen against the policy", latest(), nothing, system(everyone("1.0.0-rc.1")), "hold NoMatchingRelease"},
		"range names one":      {"a range is no policy", within(">=1.1.0-0"), nothing, system(pre), "hold NoMatchingRelease"},
		"range with policy":    {"both together are", within(">=1.1.0-0 <2.0.0", prereleases()), nothing, system(pre), "install foo-1.1.0-rc1"},
		"range ends before":    {"what is below 2.0.0 is no 2.0.0-0", within("<2.0.0", prereleases()), nothing, system(pre), "install foo-1.1.0-rc1"},
		"caret ends before":    {"nor is it compatible with 1", within("^1.0.0", prereleases()), nothing, system(pre), "install foo-1.1.0-rc1"},
		"tilde ends before":    {"nor 1.1.0-rc.1 with 1.0", within("~1.0.0", prereleases()), nothing, system(pre), "install foo-1.0.0"},
		"wildcard holds them":  {"a wildcard holds the prereleases of its own", within("1.1.x", prereleases("beta")), nothing, system(pre), "install foo-1.1.0-beta.2"},
		"leaving a prerelease": {"the release is newer than its prereleases", latest(), runs("2.0.0-rc.1"), system(everyone("1.0.0", "2.0.0")), "move foo-2.0.0"},
		"waiting in one":       {"until then, what runs is not gone back from", latest(), runs("2.0.0-rc.1"), system(everyone("1.0.0", "2.0.0-rc.1")), "hold DowngradeBlocked at foo-1.0.0"},

		"supported first":     {"a supported one is preferred to a higher one", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", deprecated))), "install foo-1.0.0"},
		"deprecated at last":  {"a deprecated one is better than none", latest(), nothing, system(list(of("1.0.0", deprecated), of("2.0.0", deprecated))), "install foo-2.0.0 warn ReleaseDeprecated"},
		"deprecated version":  {"a named one is chosen with a warning", version("2.0.0"), nothing, system(list(of("2.0.0", deprecated))), "install foo-2.0.0 warn ReleaseDeprecated"},
		"not back to support": {"support is no reason to go back", latest(), runs("2.0.0"), system(list(of("1.0.0"), of("2.0.0", deprecated))), "keep foo-2.0.0 warn ReleaseDeprecated"},
		"on to support":       {"but one to go on", latest(), runs("2.0.0"), system(list(of("2.0.0", deprecated), of("2.1.0"), of("3.0.0", deprecated))), "move foo-2.1.0"},
		"not out of support":  {"nor is a higher one a reason to leave support", latest(), runs("2.0.0"), system(list(of("2.0.0"), of("3.0.0", deprecated))), "keep foo-2.0.0"},
		"supported until":     {"support has an end", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", until(now)))), "install foo-1.0.0"},
		"supported for now":   {"before it, all is well", latest(), nothing, system(list(of("1.0.0"), of("2.0.0", until(now.Add(time.Second))))), "install foo-2.0.0"},
		"supported no more":   {"what ended runs on", version("2.0.0"), runs("2.0.0"), system(list(of("2.0.0", until(now.Add(-time.Hour))))), "keep foo-2.0.0 warn ReleaseDeprecated"},

		"newer clash":           {"the older template is in its right", version("1.0.0"), nothing, system(clash), "install foo-1.0.0"},
		"clash by name":         {"the newer one cannot be chosen", template("foo-b"), nothing, system(clash), "hold Conflict at foo-b"},
		"clash, latest":         {"nor by the highest", latest(), nothing, system(append(clash, of("2.0.0"), of("2.0.0", named("foo-c"), content("x"), later(1)))), "install foo-2.0.0"},
		"tie":                   {"where none is older, none is chosen", version("1.0.0"), nothing, system(tie), "hold Conflict at foo-1.0.0"},
		"tie, installed":        {"and what runs stays", version("1.0.0"), runs("1.0.0"), system(tie), "keep foo-1.0.0 warn Conflict"},
		"clash by build":        {"metadata makes no version of its own", template("foo-1.0.0+b1"), nothing, system(list(of("1.0.0"), of("1.0.0+b1", later(time.Minute)))), "hold Conflict at foo-1.0.0+b1"},
		"clash with deleted":    {"a template on its way out is in nobody's way", version("1.0.0"), nothing, system(list(of("1.0.0", deleting), of("1.0.0", named("foo-b"), content("x"), later(1)))), "install foo-b"},
		"clash with withdrawn":  {"a withdrawn version is not free", version("1.0.0"), nothing, system(list(of("1.0.0", withdrawn), of("1.0.0", named("foo-b"), content("x"), later(1)))), "hold ReleaseWithdrawn at foo-1.0.0"},
		"clash, unknown":        {"content that is not known yet clashes with nothing", version("1.0.0"), nothing, system(list(of("1.0.0", content(""), broken), of("1.0.0", named("foo-b"), later(1)))), "install foo-b"},
		"alias":                 {"two templates, one release: the older is named", version("1.0.0"), nothing, system(list(of("1.0.0", later(time.Minute)), of("1.0.0", named("foo-b")))), "install foo-b"},
		"alias, one broken":     {"one of them is enough", version("1.0.0"), nothing, system(list(of("1.0.0", broken), of("1.0.0", named("foo-b")))), "install foo-b"},
		"alias, one deprecated": {"the supported one is preferred", version("1.0.0"), nothing, system(list(of("1.0.0", deprecated), of("1.0.0", named("foo-b")))), "install foo-b"},
		"alias, installed":      {"the installed one is kept", version("1.0.0"), edit(runs("1.0.0"), func(i *catalog.Installed) { i.Current.Template = "foo-b" }), system(list(of("1.0.0"), of("1.0.0", named("foo-b")))), "keep foo-b"},
	})
}

func TestNextCheckIsWhenSupportEnds(t *testing.T) {
	t.Parallel()
	soon, late := now.Add(time.Hour), now.Add(2*time.Hour)
	cases := map[string]struct {
		reason  string
		request catalog.Request
		index   catalog.Index
		want    time.Time
	}{
		"no end":         {"nothing changes by itself", latest(), system(everyone("1.0.0")), time.Time{}},
		"target":         {"the target gets a warning", version("1.0.0"), system(list(of("1.0.0", until(late)))), late},
		"first of all":   {"any of the highest may lose its place", latest(), system(list(of("1.0.0", until(soon)), of("2.0.0", until(late)))), soon},
		"not concerned":  {"another version's end is of no concern", version("1.0.0"), system(list(of("1.0.0"), of("2.0.0", until(soon)))), time.Time{}},
		"twin":           {"a twin's end may change the template", version("1.0.0"), system(list(of("1.0.0"), of("1.0.0", named("foo-b"), until(soon)))), soon},
		"passed":         {"what ended does not end again", version("1.0.0"), system(list(of("1.0.0", until(now)))), time.Time{}},
		"deprecated":     {"what is deprecated has nothing to lose", version("1.0.0"), system(list(of("1.0.0", until(late), deprecated))), time.Time{}},
		"in a channel":   {"latest has no concern with a channel", latest(), system(list(of("1.0.0"), in("fast", "2.0.0", until(soon)))), time.Time{}},
		"nothing chosen": {"a hold has no concern with it", channel("fast"), system(list(of("1.0.0", until(soon)))), time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := catalog.Resolve(tc.request, nothing, tc.index, now).NextCheck; !got.Equal(tc.want) {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
