package catalog_test

import (
	"testing"

	"sluice.dev/sluice/internal/catalog"
)

func TestChannelsLeadToOneRelease(t *testing.T) {
	t.Parallel()
	shelf := everyone("1.0.0", "1.5.0", "2.0.0")
	claimed := append(everyone("1.0.0", "2.0.0"), in("stable", "1.0.0"))
	pointed := func(edits ...func(*catalog.Module)) catalog.Index {
		return system(append(shelf, in("fast", "1.5.0")), edit(foo("stable=1.0.0", "lts=0.9.0", "odd=latest", "plus=1.5.0+b2"), edits...))
	}
	run(t, map[string]example{
		"listed":           {"the module points", channel("stable"), nothing, pointed(), "install foo-1.0.0"},
		"claimed":          {"a template claims", channel("stable"), nothing, system(claimed), "install foo-stable"},
		"claimed beside":   {"claims form the channels that the module does not list", channel("fast"), nothing, pointed(), "install foo-fast"},
		"by precedence":    {"a pointer is compared by precedence", channel("plus"), nothing, pointed(), "install foo-1.5.0"},
		"missing":          {"a pointer may lead nowhere", channel("lts"), nothing, pointed(), "hold ChannelTargetMissing"},
		"missing, kept":    {"which moves nobody", channel("lts"), runs("1.0.0"), pointed(), "hold ChannelTargetMissing"},
		"no version":       {"a pointer that is no version leads nowhere", channel("odd"), nothing, pointed(), "hold ChannelTargetMissing"},
		"unknown":          {"channels are there or not", channel("edge"), nothing, pointed(), "hold ChannelNotFound"},
		"unknown, kept":    {"a channel that disappears moves nobody", channel("edge"), runs("1.0.0", via("edge")), pointed(), "hold ChannelNotFound"},
		"none":             {"none is no channel", channel("none"), nothing, system(append(shelf, in("none", "3.0.0"))), "hold ChannelNotFound"},
		"none is offered":  {"a release in none is for everyone", version("3.0.0"), nothing, system(append(shelf, in("none", "3.0.0"))), "install foo-none"},
		"no channels":      {"a module may have none", channel("stable"), nothing, system(shelf), "hold ChannelNotFound"},
		"two claims":       {"none is picked", channel("stable"), nothing, system(append(claimed, in("stable", "2.0.0", named("foo-b")))), "hold ChannelConflict"},
		"two equal claims": {"even when they agree", channel("stable"), nothing, system(append(claimed, in("stable", "1.0.0", named("foo-b")))), "hold ChannelConflict"},
		"two claims, kept": {
			"and who is there stays", channel("stable"), runs("1.0.0", via("stable")),
			system(append(claimed, in("stable", "2.0.0", named("foo-b")))), "hold ChannelConflict",
		},
		"two claims, listed": {
			"the module settles it", channel("stable"), nothing,
			system(append(claimed, in("stable", "2.0.0", named("foo-b"))), foo("stable=2.0.0")), "install foo-2.0.0",
		},
		"two claims, one leaving": {
			"a template that is being deleted claims nothing", channel("stable"), nothing,
			system(append(claimed, in("stable", "2.0.0", named("foo-b"), deleting))), "install foo-stable",
		},
		"overridden": {"the module's pointer beats the claim", channel("stable"), nothing, system(claimed, foo("stable=2.0.0")), "install foo-2.0.0"},
		"to a claimant": {
			"a pointer may lead to a release that is in a channel only", channel("edge"), nothing,
			system(append(shelf, in("experimental", "3.0.0")), foo("edge=3.0.0")), "install foo-experimental",
		},
		"everyone's twin": {
			"of two templates of one release, the one for everyone", channel("stable"), nothing,
			system(append(shelf, in("fast", "1.0.0")), foo("stable=1.0.0")), "install foo-1.0.0",
		},
		"everyone's younger twin": {
			"even when it is younger", channel("stable"), nothing,
			system(append(list(of("1.0.0", later(1))), in("fast", "1.0.0")), foo("stable=1.0.0")), "install foo-1.0.0",
		},
		"own twin": {
			"unless the other is installed", channel("stable"), edit(runs("1.0.0"), func(i *catalog.Installed) { i.Current.Template = "foo-fast" }),
			system(append(shelf, in("fast", "1.0.0")), foo("stable=1.0.0")), "keep foo-fast",
		},
		"prerelease":          {"a channel may lead to a prerelease", channel("edge"), nothing, system(everyone("2.0.0-rc.1"), foo("edge=2.0.0-rc.1")), "install foo-2.0.0-rc.1"},
		"upgrade":             {"the pointer moves, the installation follows", channel("stable"), runs("1.0.0"), system(shelf, foo("stable=2.0.0")), "move foo-2.0.0"},
		"pointer back":        {"a pointer that moves back moves nobody", channel("stable"), runs("2.0.0", via("stable"), after("1.0.0")), system(shelf, foo("stable=1.0.0")), "hold DowngradeBlocked at foo-1.0.0"},
		"not ready":           {"a target that cannot be had is not passed over", channel("stable"), nothing, system(list(of("1.0.0", broken), of("0.9.0")), foo("stable=1.0.0")), "hold ReleaseNotReady at foo-1.0.0"},
		"withdrawn":           {"nor one that was withdrawn", channel("stable"), nothing, system(list(of("1.0.0", withdrawn), of("0.9.0")), foo("stable=1.0.0")), "hold ReleaseWithdrawn at foo-1.0.0"},
		"deprecated":          {"a deprecated target is still the target", channel("stable"), nothing, system(list(of("1.0.0", deprecated), of("2.0.0")), foo("stable=1.0.0")), "install foo-1.0.0 warn ReleaseDeprecated"},
		"idle":                {"a target that nothing fetched yet is had for the asking", channel("stable"), nothing, system(list(of("1.0.0", idle)), foo("stable=1.0.0")), "install foo-1.0.0"},
		"no version, claimed": {"a release without a version is chosen by channel", channel("regular"), nothing, system(list(in("regular", "1.0.0", unversioned))), "install foo-regular"},

		"suspended, new":     {"nobody enters", channel("stable"), nothing, pointed(suspend("stable")), "hold ChannelSuspended at foo-1.0.0"},
		"suspended, behind":  {"nobody moves", channel("plus"), runs("1.0.0"), pointed(suspend("plus")), "hold ChannelSuspended at foo-1.5.0"},
		"suspended, there":   {"who is there stays there", channel("stable"), runs("1.0.0"), pointed(suspend("stable")), "keep foo-1.0.0 warn ChannelSuspended"},
		"suspended, missing": {"a broken pointer is broken all the same", channel("lts"), runs("1.0.0"), pointed(suspend("lts")), "hold ChannelTargetMissing"},
		"suspended, left":    {"a suspended channel can be left", version("2.0.0"), runs("1.0.0", via("stable")), pointed(suspend("stable")), "move foo-2.0.0"},
		"suspended, other":   {"another channel's stop is not its own", channel("plus"), runs("1.0.0"), pointed(suspend("stable")), "move foo-1.5.0"},
		"suspended, default": {"the stop holds on every way into the channel", ask(), nothing, pointed(suspend("stable"), byDefault("stable")), "hold ChannelSuspended at foo-1.0.0"},
		"suspended, consent": {"consent to a version does not lift the stop", channel("stable", allow("1.0.0")), runs("2.0.0"), pointed(suspend("stable")), "hold ChannelSuspended at foo-1.0.0"},

		"default channel":         {"the module says where a request goes that does not say", ask(), nothing, pointed(byDefault("stable")), "install foo-1.0.0"},
		"default without channel": {"else it is the latest", ask(), nothing, pointed(), "install foo-2.0.0"},
		"default without module":  {"else it is the latest", ask(), nothing, system(shelf), "install foo-2.0.0"},
		"default unknown":         {"a default that is not there is not passed over", ask(), nothing, pointed(byDefault("edge")), "hold ChannelNotFound"},
		"default claimed":         {"a default may be claimed", ask(), nothing, pointed(byDefault("fast")), "install foo-fast"},
		"default by template":     {"a template needs no default", template("foo-2.0.0"), nothing, pointed(byDefault("stable")), "install foo-2.0.0"},
	})
}

func TestVersionsAndTemplatesAreExact(t *testing.T) {
	t.Parallel()
	shelf := append(everyone("1.0.0", "1.0.1-rc.1", "2.0.0+b7"), in("regular", "1.0.0", unversioned), of("3.0.0", named("odd")))
	run(t, map[string]example{
		"version":            {"the one", version("1.0.0"), nothing, system(shelf), "install foo-1.0.0"},
		"prerelease":         {"a version may be a prerelease", version("1.0.1-rc.1"), nothing, system(shelf), "install foo-1.0.1-rc.1"},
		"precedence":         {"build metadata has no say", version("2.0.0"), nothing, system(shelf), "install foo-2.0.0+b7"},
		"other build":        {"not even other metadata", version("2.0.0+b8"), nothing, system(shelf), "install foo-2.0.0+b7"},
		"not there":          {"no neighbour is taken", version("1.0.2"), nothing, system(shelf), "hold VersionNotFound"},
		"disappeared":        {"what is installed stays when its release is gone", version("1.0.2"), runs("1.0.2"), system(shelf), "hold VersionNotFound"},
		"free name":          {"templates are found by what they say, not by their names", version("3.0.0"), nothing, system(shelf), "install odd"},
		"template":           {"one template", template("odd"), nothing, system(shelf), "install odd"},
		"no version":         {"a release without a version is chosen by name", template("foo-regular"), nothing, system(shelf), "install foo-regular"},
		"prerelease by name": {"so is a prerelease", template("foo-1.0.1-rc.1"), nothing, system(shelf), "install foo-1.0.1-rc.1"},
		"claimed by name":    {"so is one that is in a channel only", template("foo-edge"), nothing, system(list(in("edge", "9.0.0"))), "install foo-edge"},
		"edited in place":    {"a template that moved on is followed by name", template("foo-1.0.0"), runs("1.0.0"), system(list(of("1.1.0", named("foo-1.0.0")))), "move foo-1.0.0"},
		"edited away":        {"and is no longer there by its old version", version("1.0.0"), runs("1.0.0"), system(list(of("1.1.0", named("foo-1.0.0")))), "hold VersionNotFound"},
		"no strict version":  {"what is no version is not offered", latest(), nothing, system(list(of("v1.0.0"), of("0.1.0"), of("2024"))), "install foo-0.1.0"},
		"only channels":      {"latest is not what is in channels only", latest(), nothing, system(list(in("regular", "1.0.0"))), "hold NoMatchingRelease"},
	})
}
