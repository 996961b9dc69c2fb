package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

func TestModuleStatusShowsItsChannels(t *testing.T) {
	t.Parallel()
	releases := list(
		of("1.0.0"), of("1.5.0", idle), of("2.0.0", broken), of("2.1.0", withdrawn), in("fast", "1.0.0"), in("edge", "3.0.0"),
		in("twice", "3.0.0", named("b")), in("twice", "3.0.0", named("c")), in("regular", "0.1.0", unversioned),
	)
	object := edit(foo("fast=1.5.0", "lts=0.9.0", "next=2.0.0", "stable=1.0.0", "worse=2.1.0"), suspend("stable"), oneWay("next"), admitting())
	c := catalog.New(systemNamespace, releases, []catalog.Module{object})
	var got []string
	for _, channel := range c.Channels("foo", now) {
		line := fmt.Sprintf("%s=%s", channel.Name, channel.Version)
		if channel.Release != nil {
			line += " " + channel.Release.Template
		}
		got = append(got, fmt.Sprintf("%s %s listed=%t ready=%t suspended=%t oneWay=%t",
			line, channel.Reason, channel.Listed, channel.Ready, channel.Suspended, channel.OneWay))
	}
	want := []string{
		"edge=3.0.0 foo-edge  listed=false ready=true suspended=false oneWay=false",
		"fast=1.5.0 foo-1.5.0  listed=true ready=false suspended=false oneWay=false",
		"lts=0.9.0 ChannelTargetMissing listed=true ready=false suspended=false oneWay=false",
		"next=2.0.0 ReleaseNotReady listed=true ready=false suspended=false oneWay=true",
		"regular= foo-regular  listed=false ready=true suspended=false oneWay=false",
		"stable=1.0.0 foo-1.0.0  listed=true ready=true suspended=true oneWay=false",
		"twice= ChannelConflict listed=false ready=false suspended=false oneWay=false",
		"worse=2.1.0 ReleaseWithdrawn listed=true ready=false suspended=false oneWay=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := c.Channels("bar", now); got != nil {
		t.Errorf("channels of a module that is not there: %v", got)
	}
}

func TestLatestIsWhatASoundRequestGets(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		releases []catalog.Release
		want     string
	}{
		"highest":    {"by precedence", everyone("1.9.0", "1.10.0"), "1.10.0"},
		"prerelease": {"no prerelease", everyone("1.0.0", "2.0.0-rc.1"), "1.0.0"},
		"deprecated": {"supported", list(of("1.0.0"), of("2.0.0", deprecated)), "1.0.0"},
		"ended":      {"supported still", list(of("1.0.0"), of("2.0.0", until(now))), "1.0.0"},
		"not ready":  {"to be had", list(of("1.0.0"), of("2.0.0", broken)), "1.0.0"},
		"idle":       {"fetched or not", list(of("1.0.0"), of("2.0.0", idle)), "2.0.0"},
		"channel":    {"for everyone", list(of("1.0.0"), in("fast", "2.0.0")), "1.0.0"},
		"conflict":   {"in its right", list(of("1.0.0"), of("2.0.0"), of("2.0.0", named("b"), content("x"))), "1.0.0"},
		"deleting":   {"staying", list(of("1.0.0"), of("2.0.0", deleting)), "1.0.0"},
		"unknown":    {"with a version", list(of("1.0.0"), of("2")), "1.0.0"},
		"none":       {"or nothing", list(of("1.0.0", withdrawn)), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := catalog.New(systemNamespace, tc.releases, nil).Latest("foo", now)
			if got.Version != tc.want || found != (tc.want != "") {
				t.Errorf("%s: %q, %t; want %q", tc.reason, got.Version, found, tc.want)
			}
		})
	}
	if _, found := catalog.New(systemNamespace, nil, nil).Latest("foo", now); found {
		t.Error("an empty catalogue has a latest release")
	}
}

func TestCatalogueListsWhatItHas(t *testing.T) {
	t.Parallel()
	c := catalog.New(systemNamespace, append(everyone("1.9.0", "2.0.0-rc.1", "1.10.0", "2.0.0", "0"), of("1.0.0", bar)), []catalog.Module{{Name: "baz"}})
	if diff := cmp.Diff([]string{"bar", "baz", "foo"}, c.Modules()); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, r := range c.Releases("foo") {
		got = append(got, r.Version)
	}
	if diff := cmp.Diff([]string{"2.0.0", "2.0.0-rc.1", "1.10.0", "1.9.0", "0"}, got); diff != "" {
		t.Error(diff)
	}
	if c.Namespace() != systemNamespace || c.Releases("baz") != nil || c.Releases("nobody") != nil {
		t.Errorf("%s, %v, %v", c.Namespace(), c.Releases("baz"), c.Releases("nobody"))
	}
}

func TestUpgradesSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	shelf := system(append(everyone("1.0.0", "1.0.5", "1.4.0", "2.0.0-rc.1", "2.0.0"),
		of("1.1.0", broken), of("1.2.0", withdrawn), of("1.3.0", deleting), of("1.4.0", named("twin"), later(1)), of("1.4.0", named("clash"), content("x"), later(1)),
		in("edge", "3.0.0")), edit(foo("stable=1.4.0", "stopped=2.0.0"), suspend("stopped")))
	cases := map[string]struct {
		reason    string
		request   catalog.Request
		installed catalog.Installed
		index     catalog.Index
		want      []string
	}{
		"latest":        {"all that is newer", latest(), runs("1.0.0"), shelf, []string{"2.0.0", "1.4.0", "1.1.0 ReleaseNotReady", "1.0.5"}},
		"step":          {"and what is too far", latest(step(modulesv1.StepMinor)), runs("1.0.0"), shelf, []string{"2.0.0 UpgradeBlocked", "1.4.0", "1.1.0 ReleaseNotReady", "1.0.5"}},
		"range":         {"and what is outside", within("1.0.x || 3.x"), runs("1.0.0"), shelf, []string{"2.0.0 NotSelected", "1.4.0 NotSelected", "1.1.0 NotSelected", "1.0.5"}},
		"pre":           {"prereleases when asked for", latest(prereleases()), runs("1.4.0"), shelf, []string{"2.0.0", "2.0.0-rc.1"}},
		"version":       {"a version is chosen by an edit", version("1.0.0"), runs("1.0.0"), shelf, []string{"2.0.0 NotSelected", "1.4.0 NotSelected", "1.1.0 NotSelected", "1.0.5 NotSelected"}},
		"chosen":        {"the chosen one is allowed", version("1.4.0"), runs("1.0.0"), shelf, []string{"2.0.0 NotSelected", "1.4.0", "1.1.0 NotSelected", "1.0.5 NotSelected"}},
		"channel":       {"a channel's target counts, though only the channel has it", channel("edge"), runs("2.0.0"), shelf, []string{"3.0.0"}},
		"channel, twin": {"the channel's template speaks for its version", channel("edge"), runs("2.0.0"), system(list(of("3.0.0"), in("edge", "3.0.0"))), []string{"3.0.0"}},
		"twin ready":    {"a twin that can be had speaks for its version", latest(), runs("1.0.0"), system(list(of("2.0.0", broken), of("2.0.0", named("b"), later(1)), of("3.0.0"))), []string{"3.0.0", "2.0.0"}},
		"named":         {"and a prerelease that is named", version("2.0.0-rc.1"), runs("1.4.0"), shelf, []string{"2.0.0 NotSelected", "2.0.0-rc.1"}},
		"held":          {"a hold's reason is the candidate's", channel("stopped"), runs("1.4.0"), shelf, []string{"2.0.0 ChannelSuspended"}},
		"manual":        {"everything waits", latest(mode(modulesv1.UpgradeManual)), runs("1.4.0"), shelf, []string{"2.0.0 AwaitingApproval"}},
		"approved":      {"but for what is approved", latest(mode(modulesv1.UpgradeManual), approve("p")), runs("1.4.0", planned("2.0.0", "p")), shelf, []string{"2.0.0"}},
		"never":         {"nothing is allowed", latest(mode(modulesv1.UpgradeNever)), runs("1.4.0"), shelf, []string{"2.0.0 UpgradesNever"}},
		"shut out":      {"nothing is allowed", latest(), runs("1.4.0"), system(everyone("2.0.0", "2.1.0"), edit(foo(), admitting())), []string{"2.1.0 ConsumerNotAllowed", "2.0.0 ConsumerNotAllowed"}},
		"newest":        {"there is nothing newer", latest(), runs("2.0.0"), shelf, nil},
		"first":         {"before the first install everything would be", latest(), nothing, shelf, nil},
		"refused":       {"a request that cannot be read allows nothing", within("1.2"), runs("1.0.0"), shelf, nil},
		"nowhere":       {"what is not there is not newer", latest(), runs("1.0.0"), system(nil), nil},
		"one way":       {"what needs consent says so", latest(), runs("1.4.0", via("edge")), system(everyone("2.0.0", "1.4.0"), edit(foo("edge=1.4.0"), oneWay("edge"))), []string{"2.0.0 OneWayChannel"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, u := range catalog.Resolve(tc.request, tc.installed, tc.index, now).Upgrades {
				line := u.Version
				if u.Reason != "" {
					line += " " + u.Reason
				}
				if u.Allowed != (u.Reason == "") {
					t.Errorf("%+v: what is not allowed has a reason", u)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUpgradesAreBounded(t *testing.T) {
	t.Parallel()
	var releases []catalog.Release
	for i := range 50 {
		releases = append(releases, of(fmt.Sprintf("1.%d.0", i)))
	}
	got := catalog.Resolve(latest(), runs("1.0.0"), system(releases), now).Upgrades
	if len(got) != catalog.MaxUpgrades || got[0].Version != "1.49.0" {
		t.Errorf("%d upgrades, the first %+v", len(got), got[0])
	}
}

func TestTraceTellsTheWay(t *testing.T) {
	t.Parallel()
	shelf := system(list(of("1.0.0"), of("1.5.0"), of("2.0.0-rc.1"), of("2.0.0"), of("2.1.0", broken), of("2.2.0", withdrawn), in("fast", "1.5.0")))
	d := catalog.Resolve(within("<2.0.0", step(modulesv1.StepPatch)), runs("1.0.0"), shelf, now)
	want := []catalog.Rule{
		{Name: "catalog", Kept: 7, Note: "System in namespace " + systemNamespace},
		{Name: "offered", Kept: 6},
		{Name: "unique", Kept: 6},
		{Name: "ready", Kept: 5},
		{Name: "notWithdrawn", Kept: 4},
		{Name: "consumers", Kept: 4},
		{Name: "prereleases", Kept: 3},
		{Name: "range", Kept: 2},
		{Name: "upgradePath", Kept: 1},
		{Name: "support", Kept: 1, Note: "foo-1.0.0"},
	}
	if diff := cmp.Diff(want, d.Trace); diff != "" {
		t.Error(diff)
	}
	if d.Namespace != systemNamespace || d.Module != "foo" || d.SelectedBy.String() != "range/<2.0.0" || d.Channel() != "" {
		t.Errorf("%s %s %s %q", d.Namespace, d.Module, d.SelectedBy, d.Channel())
	}
}

// TestRulesTellWhomTheyLeftOut: each in words that go on from the release's name.
func TestRulesTellWhomTheyLeftOut(t *testing.T) {
	t.Parallel()
	explained := func(r *catalog.Request) { r.Explain = true }
	shelf := append(everyone("1.0.0", "1.5.0", "2.0.0-rc.1", "2.0.0"), of("2.1.0", broken), of("2.2.0", withdrawn), of("2.3.0", deleting),
		in("fast", "1.5.0"), edit(of("1.9.0", named("foo-odd")), unversioned))
	for name, tc := range map[string]struct {
		request   catalog.Request
		installed catalog.Installed
		index     catalog.Index
		want      []string
	}{
		"Range": {within("<2.0.0", step(modulesv1.StepPatch), explained), runs("1.0.0"), system(shelf), []string{
			"offered: foo-fast is in channel fast only", "offered: foo-odd has no version that is a semantic one",
			"ready: foo-2.1.0 is not ready", "notWithdrawn: foo-2.3.0 is being deleted", "notWithdrawn: foo-2.2.0 is withdrawn",
			"prereleases: foo-2.0.0-rc.1 is a prerelease that spec.module.prereleases does not admit", "range: foo-2.0.0 is outside <2.0.0",
			"upgradePath: foo-1.5.0 is a larger step from 1.0.0 than Patch",
		}},
		"Older":     {latest(explained), runs("2.0.0"), system(everyone("1.0.0", "2.0.0")), []string{"upgradePath: foo-1.0.0 is older than 2.0.0, which is installed"}},
		"Claimed":   {channel("fast", explained), nothing, system(list(of("1.0.0"), in("fast", "1.5.0"))), []string{"channel: foo-1.0.0 is not in channel fast"}},
		"Listed":    {channel("fast", explained), nothing, system(everyone("1.0.0", "2.0.0"), foo("fast=2.0.0")), []string{`channel: foo-1.0.0 is not the version "2.0.0", to which channel fast points`}},
		"Contested": {channel("fast", explained), nothing, system(list(in("fast", "1.0.0"), in("fast", "2.0.0", named("foo-b")))), []string{"channel: foo-b claims channel fast beside others, or is being deleted", "channel: foo-fast claims channel fast beside others, or is being deleted"}},
		"Stopped":   {channel("fast", explained), nothing, system(everyone("1.0.0"), edit(foo("fast=1.0.0"), suspend("fast"))), []string{"unsuspended: foo-1.0.0 is what a suspended channel points to"}},
		"Version":   {version("1.5.0", explained), nothing, system(list(of("1.0.0"), in("fast", "1.5.0"))), []string{"version: foo-fast is in channel fast only", "version: foo-1.0.0 is another version"}},
		"Template":  {template("foo-1.0.0", explained), nothing, system(everyone("1.0.0", "2.0.0")), []string{"template: foo-2.0.0 is of another template"}},
		"Twins":     {latest(explained), nothing, system(list(of("1.0.0"), of("1.0.0", named("foo-b"), later(time.Minute)))), []string{"support: foo-b comes after Release 1.0.0 (template foo-1.0.0) in support, precedence or age"}},
		"Consumers": {latest(explained), nothing, system(everyone("1.0.0"), edit(foo(), admitting())), []string{"consumers: foo-1.0.0 is of a module that does not admit namespace " + localNamespace}},
		"Unasked":   {latest(), runs("2.0.0"), system(everyone("1.0.0", "2.0.0")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, rule := range catalog.Resolve(tc.request, tc.installed, tc.index, now).Trace {
				for _, one := range rule.Dropped {
					got = append(got, rule.Name+": "+one.Template+" "+one.Why)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecisionNamesTheWay(t *testing.T) {
	t.Parallel()
	shelf := system(list(of("1.0.0"), in("fast", "1.0.0")), edit(foo(), byDefault("fast")))
	for want, request := range map[string]catalog.Request{
		"channel/fast": ask(), "latest": latest(), "version/1.0.0": version("1.0.0"), "template/foo-fast": template("foo-fast"), "range/1.x": within("1.x"),
	} {
		d := catalog.Resolve(request, nothing, shelf, now)
		if got := d.SelectedBy.String(); got != want || (d.Channel() == "fast") != (want == "channel/fast") {
			t.Errorf("%s by channel %q, want %s", got, d.Channel(), want)
		}
	}
}
