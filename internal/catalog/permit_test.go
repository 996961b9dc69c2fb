package catalog_test

import (
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

func TestDirectionIsFullPrecedence(t *testing.T) {
	t.Parallel()
	shelf := system(everyone("0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-rc.1", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0", "1.0.1", "1.9.0", "1.10.0", "2.0.0"))
	move, blocked := func(v string) string { return "move foo-" + v }, func(v string) string { return "hold DowngradeBlocked at foo-" + v }
	cases := map[string]example{}
	for _, row := range []struct {
		reason, runs, asks string
		blocked            bool
	}{
		{"a patch up", "1.0.0", "1.0.1", false},
		{"a patch down", "1.0.1", "1.0.0", true},
		{"a minor up, not as text", "1.9.0", "1.10.0", false},
		{"a minor down, not as text", "1.10.0", "1.9.0", true},
		{"a major up", "1.10.0", "2.0.0", false},
		{"a major down with a higher minor", "2.0.0", "1.10.0", true},
		{"a release after its prerelease", "1.0.0-rc.1", "1.0.0", false},
		{"a prerelease after its release", "1.0.0", "1.0.0-rc.1", true},
		{"a prerelease of a lower release", "1.0.1", "1.0.0-rc.10", true},
		{"a prerelease above a lower release", "0.9.0", "1.0.0-alpha", false},
		{"a later prerelease", "1.0.0-rc.1", "1.0.0-rc.2", false},
		{"an earlier prerelease", "1.0.0-rc.2", "1.0.0-rc.1", true},
		{"prerelease numbers are numbers", "1.0.0-rc.2", "1.0.0-rc.10", false},
		{"prerelease numbers are numbers", "1.0.0-rc.10", "1.0.0-rc.2", true},
		{"more identifiers are higher", "1.0.0-alpha", "1.0.0-alpha.1", false},
		{"fewer identifiers are lower", "1.0.0-alpha.1", "1.0.0-alpha", true},
		{"words are in order", "1.0.0-rc.1", "1.0.0-alpha.1", true},
	} {
		want := move(row.asks)
		if row.blocked {
			want = blocked(row.asks)
		}
		cases[row.runs+" to "+row.asks] = example{row.reason, version(row.asks), runs(row.runs), shelf, want}
		cases[row.runs+" to "+row.asks+" by template"] = example{row.reason, template("foo-" + row.asks), runs(row.runs), shelf, want}
		if row.blocked {
			cases[row.runs+" to "+row.asks+" with consent"] = example{
				row.reason + ", and consented to", version(row.asks, allow(row.asks)), runs(row.runs), shelf, move(row.asks),
			}
		}
	}
	run(t, cases)
}

// TestWhatWasBegunHasRun: half a release may have changed the users' data already, so that it counts for the direction like
// one that was applied in full.
func TestWhatWasBegunHasRun(t *testing.T) {
	t.Parallel()
	shelf := everyone("1.0.0", "1.1.0", "2.0.0")
	back := system(shelf, foo("stable=1.0.0"))
	upgrading, first := runs("1.0.0", began("2.0.0")), edit(nothing, began("2.0.0"))
	by := func(channel string) func(*modulesv1.Release) {
		return func(c *modulesv1.Release) { c.Channel = channel }
	}
	oneWayShelf := system(shelf, edit(foo("v2=2.0.0", "stable=2.0.0"), oneWay("v2")))
	run(t, map[string]example{
		"goes on":           {"what was begun is gone on with", version("2.0.0"), upgrading, back, "move foo-2.0.0"},
		"back":              {"a channel that moved back rolls nothing back", channel("stable"), upgrading, back, "hold DowngradeBlocked at foo-1.0.0"},
		"between":           {"nor half the way back", version("1.1.0"), upgrading, back, "hold DowngradeBlocked at foo-1.1.0"},
		"onward":            {"a newer release takes over", latest(), upgrading, system(append(shelf, of("2.1.0"))), "move foo-2.1.0"},
		"consented":         {"consent is consent", channel("stable", allow("1.0.0")), upgrading, back, "keep foo-1.0.0"},
		"named":             {"what ran before it may be named", version("1.0.0"), upgrading, back, "keep foo-1.0.0"},
		"vanished":          {"a template that vanishes rolls nothing back", latest(), upgrading, system(everyone("1.0.0")), "hold DowngradeBlocked at foo-1.0.0"},
		"withdrawn":         {"nor does a withdrawal", latest(), upgrading, system(append(everyone("1.0.0"), of("2.0.0", withdrawn))), "hold DowngradeBlocked at foo-1.0.0"},
		"failed":            {"nor an artifact that is lost", latest(), upgrading, system(append(everyone("1.0.0"), of("2.0.0", broken))), "hold DowngradeBlocked at foo-1.0.0"},
		"other content":     {"other content under its version is no way on", version("2.0.0"), upgrading, system(list(of("1.0.0"), of("2.0.0", content("sha256:mended")))), "hold Conflict at foo-2.0.0"},
		"first":             {"a first install counts as well", version("1.0.0"), first, back, "hold DowngradeBlocked at foo-1.0.0"},
		"first, other":      {"an installation is for the module that was begun", ask(func(r *catalog.Request) { r.Name = "bar" }), first, system(append(shelf, of("9.0.0", bar))), "hold ModuleMismatch"},
		"first, catalogue":  {"and for its catalogue", latest(), first, both(everyone("9.0.0"), shelf), "install foo-2.0.0"},
		"undone, and again": {"an upgrade that was being undone is taken up again", version("2.0.0"), runs("2.0.0", began("1.0.0")), back, "keep foo-2.0.0"},
		"undone half":       {"but not up to a release between the two", version("1.1.0"), runs("2.0.0", began("1.0.0")), back, "hold DowngradeBlocked at foo-1.1.0"},
		"one-way":           {"whoever was on the way into a one-way channel is in it", channel("stable"), runs("1.0.0", began("2.0.0", by("v2"))), oneWayShelf, "hold OneWayChannel at foo-2.0.0"},
		"one-way, stays":    {"and goes on in it", channel("v2"), runs("1.0.0", began("2.0.0", by("v2"))), oneWayShelf, "move foo-2.0.0"},
		"never begun":       {"a channel that had moved to what could not be had moves back", channel("stable"), runs("1.0.0"), back, "keep foo-1.0.0"},
	})
}

func TestConsentIsExact(t *testing.T) {
	t.Parallel()
	shelf := everyone("1.0.0", "1.1.0", "1.2.0", "2.0.0+b7")
	pointed := system(shelf, foo("stable=1.1.0"))
	untold := func(digest string) []catalog.Release {
		return list(in("regular", "1.0.0", unversioned, content(digest)), of("2.0.0"))
	}
	run(t, map[string]example{
		"named version":     {"the version that is named", version("1.0.0", allow("1.0.0")), runs("1.2.0"), pointed, "move foo-1.0.0"},
		"other version":     {"and no other", version("1.0.0", allow("1.1.0")), runs("1.2.0"), pointed, "hold DowngradeBlocked at foo-1.0.0"},
		"by channel":        {"by whichever way", channel("stable", allow("1.1.0")), runs("1.2.0"), pointed, "move foo-1.1.0"},
		"channel elsewhere": {"where the channel points now", channel("stable", allow("1.0.0")), runs("1.2.0"), pointed, "hold DowngradeBlocked at foo-1.1.0"},
		"by range":          {"by a range too", within("<1.2.0", allow("1.1.0")), runs("1.2.0"), pointed, "move foo-1.1.0"},
		"range elsewhere":   {"the highest of the range is the target", within("<1.2.0", allow("1.0.0")), runs("1.2.0"), pointed, "hold DowngradeBlocked at foo-1.1.0"},
		"not the target":    {"consent chooses nothing by itself", latest(allow("1.0.0")), runs("1.2.0"), system(everyone("1.0.0", "1.2.0")), "keep foo-1.2.0"},
		"not twice":         {"once there, it has no more effect", version("1.0.0", allow("1.0.0")), runs("1.0.0", after("1.2.0")), pointed, "keep foo-1.0.0"},
		"metadata differs":  {"exact means exact", version("2.0.0", allow("2.0.0")), runs("3.0.0"), pointed, "hold DowngradeBlocked at foo-2.0.0+b7"},
		"metadata":          {"with its metadata", version("2.0.0", allow("2.0.0+b7")), runs("3.0.0"), pointed, "move foo-2.0.0+b7"},
		"upward":            {"it takes nothing away from upgrades", version("1.2.0", allow("1.0.0")), runs("1.1.0"), pointed, "move foo-1.2.0"},
		"clash":             {"it does not help against other content", version("1.1.0", allow("1.1.0")), runs("1.1.0", holding("sha256:mine")), pointed, "hold Conflict at foo-1.1.0"},
		"release is gone":   {"what runs and is gone from the catalogue is newer still", latest(), runs("3.0.0"), pointed, "hold DowngradeBlocked at foo-2.0.0+b7"},
		"range moved down":  {"a range that moves down moves nobody", within("1.1.x"), runs("1.2.0"), pointed, "hold DowngradeBlocked at foo-1.1.0"},
		"clash by channel":  {"a version stands for one content", channel("stable"), runs("1.1.0", holding("sha256:mine")), pointed, "hold Conflict at foo-1.1.0"},
		"clash by latest":   {"by latest too", latest(), runs("1.2.0", holding("sha256:mine")), system(everyone("1.0.0", "1.2.0")), "hold Conflict at foo-1.2.0"},
		"clash, and newer":  {"a newer release leads out of it", latest(), runs("1.1.0", holding("sha256:mine")), system(everyone("1.1.0", "1.2.0")), "move foo-1.2.0"},
		"retagged up":       {"the same content under a higher version is an upgrade", version("1.2.0"), runs("1.1.0", holding("sha256:1.2.0")), pointed, "move foo-1.2.0"},
		"metadata, same":    {"equal precedence and content is the same", version("2.0.0"), runs("2.0.0", holding("sha256:2.0.0+b7")), pointed, "keep foo-2.0.0+b7"},

		"back":             {"what ran before can be gone back to", version("1.0.0"), runs("1.2.0", after("1.0.0")), pointed, "move foo-1.0.0"},
		"back by template": {"by name too", template("foo-1.0.0"), runs("1.2.0", after("1.0.0")), pointed, "move foo-1.0.0"},
		"further back":     {"and nothing else that is older", version("1.1.0"), runs("1.2.0", after("1.0.0")), pointed, "hold DowngradeBlocked at foo-1.1.0"},
		"back by channel":  {"only where the request names it", channel("stable"), runs("1.2.0", after("1.1.0")), pointed, "hold DowngradeBlocked at foo-1.1.0"},
		"back by range":    {"which a range does not", within("<1.2.0"), runs("1.2.0", after("1.1.0")), pointed, "hold DowngradeBlocked at foo-1.1.0"},
		"back, other content": {
			"what ran is content, not a number", version("1.0.0"), edit(runs("1.2.0", after("1.0.0")), func(i *catalog.Installed) { i.Previous.Content = "sha256:mine" }), pointed,
			"hold DowngradeBlocked at foo-1.0.0",
		},
		"back, other version": {
			"and not content under another number", version("1.0.0"), edit(runs("1.2.0", after("1.0.0")), func(i *catalog.Installed) { i.Previous.Version = "0.9.0" }),
			pointed, "hold DowngradeBlocked at foo-1.0.0",
		},
		"back, never":  {"a mode of never is never", version("1.0.0", mode(modulesv1.UpgradeNever)), runs("1.2.0", after("1.0.0")), pointed, "hold UpgradesNever at foo-1.0.0"},
		"back, manual": {"a change is approved in either direction", version("1.0.0", mode(modulesv1.UpgradeManual)), runs("1.2.0", after("1.0.0")), pointed, "hold AwaitingApproval at foo-1.0.0"},
		"back, far":    {"the largest step is one of upgrades", version("1.0.0", step(modulesv1.StepPatch)), runs("1.2.0", after("1.0.0")), pointed, "move foo-1.0.0"},
		"forth":        {"and then on again", version("1.2.0"), runs("1.0.0", after("1.2.0")), pointed, "move foo-1.2.0"},

		"unknown, same":      {"the same content needs no version", channel("regular"), unversionedRuns("sha256:a"), system(untold("sha256:a")), "keep foo-regular"},
		"unknown, other":     {"nothing says which is newer", channel("regular"), unversionedRuns("sha256:b"), system(untold("sha256:a")), "hold VersionUnknown at foo-regular"},
		"unknown to known":   {"neither from an unknown version", version("2.0.0"), unversionedRuns("sha256:a"), system(untold("sha256:a")), "hold VersionUnknown at foo-2.0.0"},
		"unknown, consented": {"unless the version is named", version("2.0.0", allow("2.0.0")), unversionedRuns("sha256:a"), system(untold("sha256:a")), "move foo-2.0.0"},
		"known to unknown":   {"nor to one", channel("regular"), runs("2.0.0"), system(untold("sha256:a")), "hold VersionUnknown at foo-regular"},
		"unknown, latest":    {"nor by latest", latest(), unversionedRuns("sha256:a"), system(untold("sha256:a")), "hold VersionUnknown at foo-2.0.0"},
		"back to unknown": {"what ran before ran, version or not", template("foo-regular"), edit(runs("2.0.0"), func(i *catalog.Installed) {
			i.Previous = &modulesv1.Release{Template: "foo-regular", Content: "sha256:a"}
		}), system(untold("sha256:a")), "move foo-regular"},
		"named since": {"a version that was given later changes nothing", channel("regular"), unversionedRuns("sha256:1.0.0"), system(list(in("regular", "1.0.0"))), "keep foo-regular"},
		"no content":  {"content that is not known is not the same", channel("regular"), unversionedRuns(""), system(untold("")), "hold VersionUnknown at foo-regular"},
	})
}

func TestStepsAndModesLimitUpgrades(t *testing.T) {
	t.Parallel()
	shelf := system(everyone("1.0.0", "1.0.5", "1.4.0", "2.0.0", "2.0.0-rc.1"), foo("fast=2.0.0", "stable=1.4.0"))
	plan := func(v, digest string) catalog.Installed { return runs("1.0.0", planned(v, digest)) }
	run(t, map[string]example{
		"patch, latest":      {"the highest within the step", latest(step(modulesv1.StepPatch)), runs("1.0.0"), shelf, "move foo-1.0.5"},
		"minor, latest":      {"the highest within the step", latest(step(modulesv1.StepMinor)), runs("1.0.0"), shelf, "move foo-1.4.0"},
		"major, latest":      {"no limit", latest(step(modulesv1.StepMajor)), runs("1.0.0"), shelf, "move foo-2.0.0"},
		"no step, latest":    {"no limit", latest(), runs("1.0.0"), shelf, "move foo-2.0.0"},
		"minor, nothing":     {"what is beyond the step is no reason to hold", latest(step(modulesv1.StepMinor)), runs("1.4.0"), shelf, "keep foo-1.4.0"},
		"minor, only beyond": {"unless what runs is out of the range", within(">=2.0.0", step(modulesv1.StepMinor)), runs("1.4.0"), shelf, "hold UpgradeBlocked at foo-2.0.0"},
		"minor, version":     {"a named version is held at", version("2.0.0", step(modulesv1.StepMinor)), runs("1.4.0"), shelf, "hold UpgradeBlocked at foo-2.0.0"},
		"minor, prerelease":  {"a prerelease of the next major is in that major", version("2.0.0-rc.1", step(modulesv1.StepMinor)), runs("1.4.0"), shelf, "hold UpgradeBlocked at foo-2.0.0-rc.1"},
		"minor, channel":     {"a channel is held at", channel("fast", step(modulesv1.StepMinor)), runs("1.4.0"), shelf, "hold UpgradeBlocked at foo-2.0.0"},
		"minor, in step":     {"or followed", channel("stable", step(modulesv1.StepMinor)), runs("1.0.0"), shelf, "move foo-1.4.0"},
		"patch, template":    {"a template is held at", template("foo-1.4.0", step(modulesv1.StepPatch)), runs("1.0.0"), shelf, "hold UpgradeBlocked at foo-1.4.0"},
		"patch, prerelease":  {"from a prerelease to its release is a patch", version("2.0.0", step(modulesv1.StepPatch)), runs("2.0.0-rc.1"), shelf, "move foo-2.0.0"},
		"patch, first":       {"the first install is no step", latest(step(modulesv1.StepPatch)), nothing, shelf, "install foo-2.0.0"},
		"patch, down":        {"a downgrade with consent is no upgrade", version("1.0.0", step(modulesv1.StepPatch), allow("1.0.0")), runs("2.0.0"), shelf, "move foo-1.0.0"},
		"consent to upgrade": {"consent to go back is none to go far", version("2.0.0", step(modulesv1.StepMinor), allow("2.0.0")), runs("1.4.0"), shelf, "hold UpgradeBlocked at foo-2.0.0"},

		"never, first":     {"the first install is made", latest(mode(modulesv1.UpgradeNever)), nothing, shelf, "install foo-2.0.0"},
		"never, upgrade":   {"and nothing after", latest(mode(modulesv1.UpgradeNever)), runs("1.0.0"), shelf, "hold UpgradesNever at foo-2.0.0"},
		"never, there":     {"what is there is there", latest(mode(modulesv1.UpgradeNever)), runs("2.0.0"), shelf, "keep foo-2.0.0"},
		"never, downgrade": {"the direction is told first", version("1.0.0", mode(modulesv1.UpgradeNever)), runs("2.0.0"), shelf, "hold DowngradeBlocked at foo-1.0.0"},
		"never, edited":    {"not even by an edit", version("1.4.0", mode(modulesv1.UpgradeNever)), runs("1.0.0"), shelf, "hold UpgradesNever at foo-1.4.0"},
		"automatic":        {"said or not", latest(mode(modulesv1.UpgradeAutomatic)), runs("1.0.0"), shelf, "move foo-2.0.0"},

		"manual, first":         {"the first install is automatic", latest(mode(modulesv1.UpgradeManual)), nothing, shelf, "install foo-2.0.0"},
		"manual, no plan":       {"a change waits", latest(mode(modulesv1.UpgradeManual)), runs("1.0.0"), shelf, "hold AwaitingApproval at foo-2.0.0"},
		"manual, plan":          {"for the plan's digest", latest(mode(modulesv1.UpgradeManual)), plan("2.0.0", "sha256:plan"), shelf, "hold AwaitingApproval at foo-2.0.0"},
		"manual, approved":      {"which approves it", latest(mode(modulesv1.UpgradeManual), approve("sha256:plan")), plan("2.0.0", "sha256:plan"), shelf, "move foo-2.0.0"},
		"manual, other plan":    {"and no other", latest(mode(modulesv1.UpgradeManual), approve("sha256:old")), plan("2.0.0", "sha256:plan"), shelf, "hold AwaitingApproval at foo-2.0.0"},
		"manual, other release": {"nor the plan of another release", latest(mode(modulesv1.UpgradeManual), approve("sha256:plan")), plan("1.4.0", "sha256:plan"), shelf, "hold AwaitingApproval at foo-2.0.0"},
		"manual, other content": {
			"nor the plan of other content", latest(mode(modulesv1.UpgradeManual), approve("sha256:plan")),
			edit(plan("2.0.0", "sha256:plan"), func(i *catalog.Installed) { i.Plan.Content = "sha256:other" }), shelf, "hold AwaitingApproval at foo-2.0.0",
		},
		"manual, no digests":     {"nothing approves nothing", latest(mode(modulesv1.UpgradeManual)), plan("2.0.0", ""), shelf, "hold AwaitingApproval at foo-2.0.0"},
		"manual, approved ahead": {"an approval without a plan approves nothing", latest(mode(modulesv1.UpgradeManual), approve("sha256:plan")), runs("1.0.0"), shelf, "hold AwaitingApproval at foo-2.0.0"},
		"manual, there":          {"what is there needs no approval", latest(mode(modulesv1.UpgradeManual)), runs("2.0.0"), shelf, "keep foo-2.0.0"},
		"manual, downgrade":      {"approval is no consent to go back", version("1.0.0", mode(modulesv1.UpgradeManual), approve("sha256:plan")), runs("2.0.0", planned("1.0.0", "sha256:plan")), shelf, "hold DowngradeBlocked at foo-1.0.0"},
		"manual, both":           {"both together are", version("1.0.0", mode(modulesv1.UpgradeManual), approve("sha256:plan"), allow("1.0.0")), runs("2.0.0", planned("1.0.0", "sha256:plan")), shelf, "move foo-1.0.0"},
		"approve, automatic":     {"an approval that nothing waits for has no effect", latest(approve("sha256:old")), runs("1.0.0"), shelf, "move foo-2.0.0"},
	})
}

func TestOneWayChannelsAreLeftWithConsent(t *testing.T) {
	t.Parallel()
	releases := everyone("1.0.0", "1.5.0", "2.0.0")
	shelf := system(releases, edit(foo("stable=1.0.0", "fast=2.0.0", "experimental=1.5.0"), oneWay("experimental")))
	open := system(releases, foo("stable=1.0.0", "fast=2.0.0", "experimental=1.5.0"))
	gone := system(releases, foo("stable=1.0.0", "fast=2.0.0"))
	there := runs("1.5.0", via("experimental"))
	twoShelves := catalog.Index{
		Local:  catalog.New(localNamespace, append(everyone("3.0.0"), in("experimental", "1.7.0", named("foo-own"))), nil),
		System: catalog.New(systemNamespace, releases, []catalog.Module{edit(foo("experimental=1.5.0"), oneWay("experimental"))}),
	}
	run(t, map[string]example{
		"stays":             {"who stays is not asked", channel("experimental"), there, shelf, "keep foo-1.5.0"},
		"enters":            {"nor who enters", channel("experimental"), runs("1.0.0", via("stable")), shelf, "move foo-1.5.0"},
		"moves with it":     {"nor who moves with it", channel("experimental"), runs("1.0.0", via("experimental")), shelf, "move foo-1.5.0"},
		"to a newer":        {"another channel needs consent though it is newer", channel("fast"), there, shelf, "hold OneWayChannel at foo-2.0.0"},
		"to an older":       {"that it is older comes first", channel("stable"), there, shelf, "hold DowngradeBlocked at foo-1.0.0"},
		"with consent":      {"consent names the version", channel("fast", allow("2.0.0")), there, shelf, "move foo-2.0.0"},
		"back with consent": {"one consent is enough for both", channel("stable", allow("1.0.0")), there, shelf, "move foo-1.0.0"},
		"wrong consent":     {"exactly", channel("fast", allow("1.5.0")), there, shelf, "hold OneWayChannel at foo-2.0.0"},
		"to a version":      {"a version is another way", version("2.0.0"), there, shelf, "hold OneWayChannel at foo-2.0.0"},
		"to the same":       {"even to the same content", version("1.5.0"), there, shelf, "hold OneWayChannel at foo-1.5.0"},
		"same, consented":   {"which consent allows", version("1.5.0", allow("1.5.0")), there, shelf, "keep foo-1.5.0"},
		"to latest":         {"latest is another way", latest(), there, shelf, "hold OneWayChannel at foo-2.0.0"},
		"to a template":     {"so is a template", template("foo-2.0.0"), there, shelf, "hold OneWayChannel at foo-2.0.0"},
		"back to previous":  {"so is what ran before", version("1.0.0"), edit(there, after("1.0.0")), shelf, "hold OneWayChannel at foo-1.0.0"},
		"by default": {
			"a default that leads there is the same way", ask(), there,
			system(releases, edit(foo("experimental=1.5.0"), oneWay("experimental"), byDefault("experimental"))), "keep foo-1.5.0",
		},
		"by other default": {
			"one that does not is not", ask(), there,
			system(releases, edit(foo("experimental=1.5.0", "fast=2.0.0"), oneWay("experimental"), byDefault("fast"))), "hold OneWayChannel at foo-2.0.0",
		},
		"not one-way": {"other channels are left freely", channel("fast"), there, open, "move foo-2.0.0"},
		"gone":        {"a channel that is no more holds nobody", channel("fast"), there, gone, "move foo-2.0.0"},
		"to another catalogue": {
			"the channel's own catalogue says", latest(from(modulesv1.CatalogLocal)), edit(there, rechosen), twoShelves,
			"hold OneWayChannel at foo-3.0.0 locally",
		},
		"by the other's channel": {
			"a channel of the same name in another catalogue is another way", channel("experimental", from(modulesv1.CatalogLocal)), edit(there, rechosen),
			twoShelves, "hold OneWayChannel at foo-own locally",
		},
		"to another catalogue, consented": {
			"consent is consent", latest(from(modulesv1.CatalogLocal), allow("3.0.0")), edit(there, rechosen), twoShelves, "move foo-3.0.0 locally",
		},
		"catalogue gone": {
			"a catalogue that is no more holds nobody", latest(from(modulesv1.CatalogLocal)), edit(there, rechosen),
			catalog.Index{Local: catalog.New(localNamespace, everyone("3.0.0"), nil)},
			"move foo-3.0.0 locally",
		},
		"no version to name": {
			"without a version there is nothing to consent to", template("foo-odd"), there,
			system(append(releases, of("1.5.0", named("foo-odd"), unversioned)), edit(foo("experimental=1.5.0"), oneWay("experimental"))), "hold OneWayChannel at foo-odd",
		},
	})
}
