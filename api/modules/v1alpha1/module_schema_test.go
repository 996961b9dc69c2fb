package v1alpha1_test

import (
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func TestModuleAcceptance(t *testing.T) {
	t.Parallel()
	testAcceptance(t, modulesv1.ModuleKind, map[string]acceptance{
		"Empty":          {"a module without channels is described", "spec: {}", ""},
		"Usual":          {"channels point at versions", "spec: {description: A cache, defaultChannel: regular, channels: [{name: regular, version: 1.0.0}, {name: fast, version: 2.0.0-rc.1, oneWay: true}, {name: old, version: 0.9.0, suspended: true, message: CVE}]}", ""},
		"DefaultClaimed": {"a template may claim the default channel", "spec: {defaultChannel: regular}", ""},
		"TwoChannels":    {"two channels may point at one version", "spec: {channels: [{name: a, version: 1.0.0}, {name: b, version: 1.0.0}]}", ""},
		"Twice":          {"a channel points at one version", "spec: {channels: [{name: a, version: 1.0.0}, {name: a, version: 2.0.0}]}", "Duplicate value"},
		"None":           {"none is no channel", "spec: {channels: [{name: none, version: 1.0.0}]}", "'none' is no channel"},
		"DefaultNone":    {"nor a default", "spec: {defaultChannel: none}", "'none' is no channel"},
		"NoVersion":      {"a channel points somewhere", "spec: {channels: [{name: a}]}", "version: Required value"},
		"Range":          {"a channel points at one version, not at a range", "spec: {channels: [{name: a, version: 1.x}]}", "version: Invalid value"},
		"Overflow":       {"a version can be compared", "spec: {channels: [{name: a, version: 1.99999999999999999999.0}]}", "64 bits"},
		"Upper":          {"a channel is a DNS label", "spec: {channels: [{name: Fast, version: 1.0.0}]}", "name: Invalid value"},
		"Everyone":       {"an empty selector selects all", "spec: {consumers: {namespaceSelector: {}}}", ""},
		"Selected":       {"namespaces are selected by labels", "spec: {consumers: {namespaceSelector: {matchLabels: {team: a}}}}", ""},
		"NoSelector":     {"consumers are selected", "spec: {consumers: {}}", "namespaceSelector: Required value"},
		"Rollout":        {"rollouts come later", "spec: {rollout: {maxFailures: 1}}", "unknown field"},
		"Dotted":         {"the name is the module's", "metadata: {name: a.b}\nspec: {}", "the name has to be a module's"},
		"LongName":       {"a module's name is short", "metadata: {name: " + strings.Repeat("a", 64) + "}\nspec: {}", "the name has to be a module's"},
		"LongestName":    {"63 characters fit", "metadata: {name: " + strings.Repeat("a", 63) + "}\nspec: {}", ""},
		"ShortName":      {"one character is enough", "metadata: {name: a}\nspec: {}", ""},
	})
}

func TestModuleTransitions(t *testing.T) {
	t.Parallel()
	testTransitions(t, modulesv1.ModuleKind, map[string]transition{
		"Up":      {"a pointer moves", "spec: {channels: [{name: a, version: 1.0.0}]}", "spec: {channels: [{name: a, version: 2.0.0}]}", ""},
		"Down":    {"in both directions", "spec: {channels: [{name: a, version: 2.0.0}]}", "spec: {channels: [{name: a, version: 1.0.0}]}", ""},
		"Removed": {"and may go", "spec: {channels: [{name: a, version: 2.0.0}]}", "spec: {}", ""},
	})
}

func TestInventoryAcceptance(t *testing.T) {
	t.Parallel()
	const head = "installationUID: u, phase: "
	testAcceptance(t, modulesv1.InventoryKind, map[string]acceptance{
		"New":       {"an inventory begins empty", "data: {" + head + "Installing}", ""},
		"Members":   {"members have short names", "data: {" + head + "Installed, members: [{g: apps, v: v1, k: Deployment, ns: a, nm: b, u: c, h: d, f: e}, {v: v1, k: Namespace, nm: a, s: Pending}, {v: v1, k: Secret, ns: a, nm: b, s: Deleting, a: true, c: true}]}", ""},
		"Whole":     {"everything that is remembered", "data: {" + head + "Upgrading, choice: {requested: Auto, module: redis, catalog: System, namespace: sys}, current: {version: 1.0.0, template: a, digest: d}, previous: {version: 0.9.0}, renderDigest: r, attempt: {release: {version: 2.0.0}, renderDigest: r2, stage: Applying, startedAt: '2026-01-01T00:00:00Z'}, deletion: {mode: Block, managedResources: [{group: g, version: v1, kind: K}]}, defaultConfigCreated: {group: g, version: v1, kind: K, name: m, uid: u}, history: [{version: 1.0.0, outcome: Succeeded, at: '2026-01-01T00:00:00Z'}]}", ""},
		"NoData":    {"an inventory is its data", "metadata: {}", "data: Required value"},
		"NoUID":     {"it belongs to one installation", "data: {phase: Installed}", "installationUID: Required value"},
		"Phase":     {"there are five phases", "data: {" + head + "Resting}", "Unsupported value"},
		"State":     {"there are three states", "data: {" + head + "Installed, members: [{v: v1, k: A, nm: b, s: Gone}]}", "Unsupported value"},
		"Nameless":  {"a member has a name", "data: {" + head + "Installed, members: [{v: v1, k: A}]}", "nm: Required value"},
		"AutoFound": {"a choice is one of two", "data: {" + head + "Installed, choice: {requested: Auto, module: a, catalog: Auto, namespace: b}}", "Unsupported value"},
		"Stage":     {"there are three stages", "data: {" + head + "Upgrading, attempt: {release: {}, renderDigest: r, stage: Hoping, startedAt: '2026-01-01T00:00:00Z'}}", "Unsupported value"},
		"Status":    {"it reports nothing", "data: {" + head + "Installed}\nstatus: {}", "unknown field"},
	})
}

func TestInventoryTransitions(t *testing.T) {
	t.Parallel()
	testTransitions(t, modulesv1.InventoryKind, map[string]transition{
		"Phase": {"an installation goes on", "data: {installationUID: a, phase: Installing}", "data: {installationUID: a, phase: Installed}", ""},
		"UID":   {"another installation has another inventory", "data: {installationUID: a, phase: Installing}", "data: {installationUID: b, phase: Installing}", "installationUID is immutable"},
	})
}
