package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestModuleSelectorsLeadWhereTheySay: before, there are 1.0.0, 1.1.0 and two prereleases; after, also 1.2.0 and 3.0.0.
func TestModuleSelectorsLeadWhereTheySay(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0-beta.1"} {
		s.release(version, fooFiles(version))
	}
	followed := func(request modulesv1.ModuleRequest, policy modulesv1.PrereleasePolicy, identifiers ...string) installChange {
		if policy != "" {
			request.Prereleases = &modulesv1.Prereleases{Policy: policy, Identifiers: identifiers}
		}
		return selects(request)
	}
	latest := modulesv1.ModuleRequest{Latest: true}
	cases := map[string]struct {
		reason        string
		change        installChange
		policy        modulesv1.UpgradePolicy
		before, after string
		by            string
	}{
		"latest":     {"Prereleases are for those who ask.", followed(latest, ""), modulesv1.UpgradePolicy{}, "1.1.0", "3.0.0", "latest"},
		"nothing":    {"Who does not say gets the latest.", followed(modulesv1.ModuleRequest{}, ""), modulesv1.UpgradePolicy{}, "1.1.0", "3.0.0", "latest"},
		"include":    {"All prereleases count.", followed(latest, modulesv1.PrereleasesInclude), modulesv1.UpgradePolicy{}, "2.0.0-beta.1", "3.0.0", "latest"},
		"listed":     {"Some prereleases count.", followed(latest, modulesv1.PrereleasesListed, "rc"), modulesv1.UpgradePolicy{MaxStep: modulesv1.StepMinor}, "1.2.0-rc.1", "1.2.0", "latest"},
		"minor":      {"A step is no larger than it may be.", followed(latest, ""), modulesv1.UpgradePolicy{MaxStep: modulesv1.StepMinor}, "1.1.0", "1.2.0", "latest"},
		"tilde":      {"A range is not left.", followed(modulesv1.ModuleRequest{Range: "~1.0.0"}, ""), modulesv1.UpgradePolicy{}, "1.0.0", "1.0.0", "range/~1.0.0"},
		"caret":      {"The highest of a range is taken.", followed(modulesv1.ModuleRequest{Range: "^1.0.0"}, ""), modulesv1.UpgradePolicy{}, "1.1.0", "1.2.0", "range/^1.0.0"},
		"below":      {"Below 2.0.0 is no prerelease of it.", followed(modulesv1.ModuleRequest{Range: "<2.0.0"}, modulesv1.PrereleasesInclude), modulesv1.UpgradePolicy{}, "1.2.0-rc.1", "1.2.0", "range/<2.0.0"},
		"either":     {"One of two ranges is enough.", followed(modulesv1.ModuleRequest{Range: "1.0.x || >=3.0.0"}, ""), modulesv1.UpgradePolicy{}, "1.0.0", "3.0.0", "range/1.0.x || >=3.0.0"},
		"prerelease": {"What a version names is always meant.", byVersion("1.2.0-rc.1"), modulesv1.UpgradePolicy{}, "1.2.0-rc.1", "1.2.0-rc.1", "version/1.2.0-rc.1"},
		"never":      {"Never is never.", followed(latest, ""), modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeNever}, "1.1.0", "1.1.0", "latest"},
	}
	for name, tc := range cases {
		s.install(name, tc.change, upgrade(tc.policy))
	}
	s.install("unreadable", selects(modulesv1.ModuleRequest{Range: "1.4"}))
	s.install("nothing-there", selects(modulesv1.ModuleRequest{Range: ">=4.0.0"}))
	for name, tc := range cases {
		if obj := s.ready(name, tc.before); obj.Status.Resolution.SelectedBy != tc.by {
			t.Errorf("%s was selected by %s, want %s\n%s", name, obj.Status.Resolution.SelectedBy, tc.by, tc.reason)
		}
	}
	s.failing("unreadable", modulesv1.ResolvedCondition, modulesv1.InvalidRangeReason, "1.4.x or ~1.4.0")
	s.failing("nothing-there", modulesv1.ResolvedCondition, modulesv1.NoMatchingReleaseReason, "range 0")

	for _, version := range []string{"3.0.0", "1.2.0"} {
		s.release(version, fooFiles(version))
	}
	s.held("never", "1.1.0", modulesv1.UpgradesNeverReason, "3.0.0")
	for name, tc := range cases {
		if name != "never" {
			s.ready(name, tc.after)
		}
		s.says("settings-"+name, tc.after)
	}
	s.until("minor", "is told of what is out of reach", func(obj *modulesv1.ModuleInstallation) bool {
		return slices.Equal(obj.Status.AvailableUpgrades, []modulesv1.AvailableUpgrade{
			{Version: "3.0.0", Template: "foo-3.0.0", Reason: modulesv1.UpgradeBlockedReason},
		})
	})
}

func TestModuleGoesBackByConsentOnly(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	for _, version := range []string{"0.9.0", "1.0.0", "2.0.0"} {
		s.release(version, fooFiles(version))
	}
	built := s.publish("build", fooFiles("1.5.0"))
	s.templateIn(s.system, "foo-built", "1.5.0+build.7", "", s.artifact("1.5.0", built))
	module := s.module(map[string]string{"v2": "2.0.0", "regular": "2.0.0"}, nil)
	s.point(module, "v2", func(c *modulesv1.Channel) { c.OneWay = true })
	s.install("app", byVersion("1.0.0"))
	s.install("one-way", byChannel("v2"))
	s.install("default", selects(modulesv1.ModuleRequest{}))
	s.ready("app", "1.0.0")
	s.change("app", byVersion("2.0.0"))
	s.ready("app", "2.0.0")

	// What ran before is known to work, so that it may be gone back to by its name alone; nothing else that is older.
	s.change("app", byVersion("0.9.0"))
	s.held("app", "2.0.0", modulesv1.DowngradeBlockedReason, "allowDowngradeTo to 0.9.0")
	s.change("app", byVersion("1.0.0"))
	obj := s.ready("app", "1.0.0")
	if obj.Status.Previous == nil || obj.Status.Previous.Version != "2.0.0" || len(obj.Status.History) != 3 {
		t.Errorf("the way back is not in the history: %s", asJSON(obj.Status.History))
	}
	s.exact("app", fooMembers("app", "1.0.0")...)
	s.told("app", corev1.EventTypeNormal, modulesv1.UpgradeSucceededReason, "foo 1.0.0")

	// Consent is for one version, build metadata included.
	s.change("app", byVersion("2.0.0"))
	s.ready("app", "2.0.0")
	for _, other := range []string{"1.5.0", "1.5.0+build.8", "0.9.0"} {
		s.change("app", byVersion("1.5.0"), upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: other}))
		s.until("app", "consent to "+other+" was seen", func(obj *modulesv1.ModuleInstallation) bool {
			return obj.Status.ObservedGeneration == obj.Generation
		})
		s.held("app", "2.0.0", modulesv1.DowngradeBlockedReason, "allowDowngradeTo to 1.5.0+build.7")
	}
	s.change("app", upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: "1.5.0+build.7", Mode: modulesv1.UpgradeNever}))
	s.held("app", "2.0.0", modulesv1.UpgradesNeverReason, "1.5.0+build.7")
	s.change("app", upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: "1.5.0+build.7"}))
	s.ready("app", "1.5.0+build.7")
	s.says("settings-app", "1.5.0")

	// A one-way channel is left with consent only, even to the same release.
	s.ready("one-way", "2.0.0")
	s.change("one-way", byVersion("2.0.0"))
	s.held("one-way", "2.0.0", modulesv1.OneWayChannelReason, "set allowDowngradeTo to 2.0.0")
	s.change("one-way", byChannel("regular"))
	s.held("one-way", "2.0.0", modulesv1.OneWayChannelReason, "Channel v2")
	s.breaks("one-way", "2.0.0")
	s.change("one-way", upgrade(modulesv1.UpgradePolicy{AllowDowngradeTo: "2.0.0"}))
	if obj := s.ready("one-way", "2.0.0"); obj.Status.Current.Channel != "regular" || len(obj.Status.History) != 1 {
		t.Errorf("the channel was left with more, or less, than a new name: %s", asJSON(obj.Status))
	}

	// Who selects nothing follows the module's default.
	s.ready("default", "2.0.0")
	s.release("2.1.0", fooFiles("2.1.0"))
	s.ready("default", "2.1.0")
	patch(s, module, func() { module.Spec.DefaultChannel = "regular" })
	s.held("default", "2.1.0", modulesv1.DowngradeBlockedReason, "2.0.0")
	s.point(module, "regular", to("2.1.0"))
	if obj := s.ready("default", "2.1.0"); obj.Status.Resolution.SelectedBy != "channel/regular" {
		t.Errorf("the default channel is not followed: %s", asJSON(obj.Status.Resolution))
	}
}

func TestModuleApprovalIsForOnePlan(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}))
	s.ready("app", "1.0.0")
	s.release("2.0.0", fooFiles("2.0.0"))
	plan := func(not string) string {
		t.Helper()
		obj := s.until("app", "has another plan than "+not, func(obj *modulesv1.ModuleInstallation) bool {
			return obj.Status.ObservedGeneration == obj.Generation && obj.Status.Pending != nil && obj.Status.Pending.Plan != nil &&
				obj.Status.Pending.Plan.Digest != not
		})
		return obj.Status.Pending.Plan.Digest
	}
	first := plan("")
	// A change of the config is applied at once in every mode, and makes the plan another one.
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.CommonMetadata = &modulesv1.CommonMetadata{Labels: map[string]string{"team": "a"}}
	})
	second := plan(first)
	s.held("app", "1.0.0", modulesv1.AwaitingApprovalReason, second)
	config, err := s.configMap(t.Context(), "settings-app")
	if err != nil || config.Labels["team"] != "a" || versionIn(config) != "1.0.0" {
		t.Errorf("the config is not applied while an upgrade waits: %s, %v", asJSON(config), err)
	}
	s.change("app", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual, Approve: first}))
	s.until("app", "the worthless approval was seen", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.ObservedGeneration == obj.Generation
	})
	s.held("app", "1.0.0", modulesv1.AwaitingApprovalReason, second)
	s.change("app", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual, Approve: second}))
	s.ready("app", "2.0.0")
	s.exact("app", fooMembers("app", "2.0.0")...)
	// The approval is used up: the way back has a plan of its own.
	s.change("app", byVersion("1.0.0"))
	s.held("app", "2.0.0", modulesv1.AwaitingApprovalReason, "1.0.0")
	s.change("app", upgrade(modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual, Approve: plan(second)}))
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
}
