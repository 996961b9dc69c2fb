package v1alpha1_test

import (
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func TestInstallationAcceptance(t *testing.T) {
	t.Parallel()
	const (
		one    = "name or templateRef has to be set"
		atMost = "at most one of channel, version, range and latest"
		beside = "templateRef selects one release already"
	)
	testAcceptance(t, modulesv1.ModuleInstallationKind, map[string]acceptance{
		"Name":            {"a name is enough", "spec: {module: {name: redis}}", ""},
		"Channel":         {"a channel is followed", "spec: {module: {name: redis, channel: regular}}", ""},
		"Version":         {"a version is installed", "spec: {module: {name: redis, version: 1.0.0-rc.1+b}}", ""},
		"Range":           {"a range chooses", "spec: {module: {name: redis, range: '>=1.4.0 <2.0.0 || ~3.1.0, !=3.1.4 ^4.0.0 5.*'}}", ""},
		"Latest":          {"the latest is taken", "spec: {module: {name: redis, latest: true}}", ""},
		"Template":        {"a release has a name", "spec: {module: {templateRef: {name: redis-1.0.0}, catalog: System}}", ""},
		"NotLatest":       {"latest: false selects nothing", "spec: {module: {name: redis, channel: a, latest: false}}", ""},
		"NoSpec":          {"an installation without spec installs nothing", "metadata: {}", "spec: Required value"},
		"NoModule":        {"a module is named", "spec: {}", "spec.module: Required value"},
		"Neither":         {"by its name or a release's", "spec: {module: {channel: a}}", one},
		"Both":            {"or by both, which have to agree", "spec: {module: {name: a, templateRef: {name: b}}}", ""},
		"BothVersion":     {"a release has its version then too", "spec: {module: {name: a, templateRef: {name: b}, version: 1.0.0}}", beside},
		"ChannelVersion":  {"one selector is enough", "spec: {module: {name: a, channel: b, version: 1.0.0}}", atMost},
		"VersionRange":    {"one selector is enough", "spec: {module: {name: a, range: 1.x, version: 1.0.0}}", atMost},
		"RangeLatest":     {"one selector is enough", "spec: {module: {name: a, range: 1.x, latest: true}}", atMost},
		"ChannelLatest":   {"one selector is enough", "spec: {module: {name: a, channel: b, latest: true}}", atMost},
		"TemplateVersion": {"a release has its version", "spec: {module: {templateRef: {name: a}, version: 1.0.0}}", beside},
		"TemplateChannel": {"a release is no channel", "spec: {module: {templateRef: {name: a}, channel: b}}", beside},
		"TemplateRange":   {"a release is no range", "spec: {module: {templateRef: {name: a}, range: 1.x}}", beside},
		"TemplateLatest":  {"a release is what it is", "spec: {module: {templateRef: {name: a}, latest: true}}", beside},
		"TemplateSpace":   {"the catalogue decides the namespace", "spec: {module: {templateRef: {name: a, namespace: b}}}", "unknown field"},
		"Catalog":         {"there are three catalogues", "spec: {module: {name: a, catalog: Global}}", "Unsupported value"},
		"NoneChannel":     {"none is no channel", "spec: {module: {name: a, channel: none}}", "'none' is no channel"},
		"EmptyChannel":    {"an empty channel is a typing error", "spec: {module: {name: a, channel: ''}}", "channel"},
		"EmptyRange":      {"an empty range is a typing error", "spec: {module: {name: a, range: ''}}", "range"},
		"RangeLetters":    {"a range is no script", "spec: {module: {name: a, range: '$(x)'}}", "range: Invalid value"},
		"RangeLength":     {"a range is bounded", "spec: {module: {name: a, range: '" + strings.Repeat("1", 513) + "'}}", "Too long"},
		"ShortVersion":    {"a version is whole", "spec: {module: {name: a, version: '1.2'}}", "version: Invalid value"},
		"VVersion":        {"a version has no v", "spec: {module: {name: a, version: v1.2.3}}", "version: Invalid value"},
		"Overflow":        {"a version can be compared", "spec: {module: {name: a, version: 1.0.99999999999999999999}}", "64 bits"},

		"Listed":      {"some prereleases are let in", "spec: {module: {name: a, latest: true, prereleases: {policy: Listed, identifiers: [rc, beta]}}}", ""},
		"Include":     {"all prereleases are let in", "spec: {module: {name: a, latest: true, prereleases: {policy: Include}}}", ""},
		"ListedNone":  {"a list has entries", "spec: {module: {name: a, prereleases: {policy: Listed}}}", "identifiers go with policy Listed"},
		"ListedEmpty": {"an empty list has none", "spec: {module: {name: a, prereleases: {policy: Listed, identifiers: []}}}", "identifiers go with policy Listed"},
		"IncludeList": {"a list goes with its policy", "spec: {module: {name: a, prereleases: {policy: Include, identifiers: [rc]}}}", "identifiers go with policy Listed"},
		"DefaultList": {"and with no other", "spec: {module: {name: a, prereleases: {identifiers: [rc]}}}", "identifiers go with policy Listed"},
		"ListTwice":   {"a list is a set", "spec: {module: {name: a, prereleases: {policy: Listed, identifiers: [rc, rc]}}}", "Duplicate value"},
		"Dotted":      {"an identifier has no dot", "spec: {module: {name: a, prereleases: {policy: Listed, identifiers: [rc.1]}}}", "identifiers"},
		"PolicyText":  {"a policy is a field", "spec: {module: {name: a, prereleases: Exclude}}", "prereleases"},

		"Upgrade":     {"upgrades have rules", "spec: {module: {name: a}, upgrade: {mode: Manual, maxStep: Minor, allowDowngradeTo: 1.0.0, approve: 'DIGEST1'}}", ""},
		"Never":       {"upgrades can be off", "spec: {module: {name: a}, upgrade: {mode: Never}}", ""},
		"PatchOnly":   {"steps have a field of their own", "spec: {module: {name: a}, upgrade: {mode: PatchOnly}}", "Unsupported value"},
		"Step":        {"there are three steps", "spec: {module: {name: a}, upgrade: {maxStep: Epoch}}", "Unsupported value"},
		"DowngradeTo": {"consent is to one version", "spec: {module: {name: a}, upgrade: {allowDowngradeTo: 1.x}}", "allowDowngradeTo: Invalid value"},
		"Approve":     {"approval is of one plan", "spec: {module: {name: a}, upgrade: {approve: 'true'}}", "approve: Invalid value"},
		"Windows":     {"windows come later", "spec: {module: {name: a}, upgrade: {windows: []}}", "unknown field"},
		"OnFailure":   {"rollback comes later", "spec: {module: {name: a}, upgrade: {onFailure: Rollback}}", "unknown field"},

		"Config": {"an installation differs", "spec: {module: {name: a}, config: {substitute: {x: z}, substituteFrom: [{kind: Secret, name: s, optional: true}, {kind: ConfigMap, name: c}]," +
			" patches: [{patch: '- {op: remove, path: /a}', target: {kind: Deployment, labelSelector: 'a=b'}}, {patch: '{}'}], images: [{name: a, newName: b, newTag: c}, {name: d, digest: 'DIGEST1'}]," +
			" targetNamespace: t, commonMetadata: {labels: {a: b}, annotations: {c: d}}, defaultConfig: Ignore}}", ""},
		"FromOther":     {"variables come from two kinds", "spec: {module: {name: a}, config: {substituteFrom: [{kind: Pod, name: s}]}}", "Unsupported value"},
		"FromSpace":     {"in the same namespace", "spec: {module: {name: a}, config: {substituteFrom: [{kind: Secret, name: s, namespace: t}]}}", "unknown field"},
		"NoPatch":       {"a patch does something", "spec: {module: {name: a}, config: {patches: [{patch: ''}]}}", "patch"},
		"NoTarget":      {"a target selects something", "spec: {module: {name: a}, config: {patches: [{patch: '{}', target: {}}]}}", "target"},
		"ImageTwice":    {"an image is changed once", "spec: {module: {name: a}, config: {images: [{name: a, newTag: b}, {name: a, newTag: c}]}}", "Duplicate value"},
		"ImageNothing":  {"an image is changed", "spec: {module: {name: a}, config: {images: [{name: a}]}}", "newName, newTag or digest"},
		"ImageBoth":     {"to a tag or a digest", "spec: {module: {name: a}, config: {images: [{name: a, newTag: b, digest: 'DIGEST1'}]}}", "only one of newTag and digest"},
		"Target":        {"a namespace is a DNS label", "spec: {module: {name: a}, config: {targetNamespace: A}}", "targetNamespace: Invalid value"},
		"DefaultConfig": {"a default is created or not", "spec: {module: {name: a}, config: {defaultConfig: CreateAndDelete}}", "Unsupported value"},

		"Paused":         {"an installation can be left alone", "spec: {module: {name: a}, management: Paused, suspend: true, force: true}", ""},
		"Observe":        {"watching comes later", "spec: {module: {name: a}, management: Observe}", "Unsupported value"},
		"Prune":          {"pruning is bounded", "spec: {module: {name: a}, prune: {enabled: false, maxPercent: 100}}", ""},
		"Adopt":          {"what is there can be left alone", "spec: {module: {name: a}, adopt: Never}", ""},
		"AdoptSome":      {"there are three ways", "spec: {module: {name: a}, adopt: Sometimes}", "Unsupported value"},
		"Ignore":         {"others may own fields", "spec: {module: {name: a}, drift: {ignore: [{target: {kind: Deployment}, paths: [/spec/replicas, '/metadata/annotations/a~1b']}, {paths: [/metadata/labels/a]}]}}", ""},
		"IgnoreNothing":  {"a rule has paths", "spec: {module: {name: a}, drift: {ignore: [{target: {kind: Deployment}, paths: []}]}}", "should have at least 1 items"},
		"IgnoreName":     {"an object keeps its name", "spec: {module: {name: a}, drift: {ignore: [{paths: [/metadata/name]}]}}", "cannot be left out"},
		"IgnoreLabels":   {"an object keeps its labels", "spec: {module: {name: a}, drift: {ignore: [{paths: [/metadata/labels]}]}}", "cannot be left out"},
		"IgnorePath":     {"paths are JSON pointers", "spec: {module: {name: a}, drift: {ignore: [{paths: [spec.replicas]}]}}", "paths[0]"},
		"PruneNone":      {"no percent is no pruning", "spec: {module: {name: a}, prune: {maxPercent: 0}}", "maxPercent"},
		"PruneMore":      {"there are 100 percent", "spec: {module: {name: a}, prune: {maxPercent: 101}}", "maxPercent"},
		"PruneBool":      {"pruning has fields", "spec: {module: {name: a}, prune: true}", "prune"},
		"Block":          {"data blocks", "spec: {module: {name: a}, deletion: {mode: Block}}", ""},
		"Orphan":         {"everything is left", "spec: {module: {name: a}, deletion: {mode: Orphan}}", ""},
		"Template's":     {"the template decides", "spec: {module: {name: a}, deletion: {mode: ''}}", ""},
		"Cascade":        {"data is not deleted yet", "spec: {module: {name: a}, deletion: {mode: Cascade}}", "Unsupported value"},
		"DependsOn":      {"any kind may come first", "spec: {module: {name: a}, dependsOn: [{apiVersion: apps/v1, kind: Deployment, name: b, readyExpr: 'dep.status.ok'}, {apiVersion: v1, kind: Namespace, name: b}]}", ""},
		"DependsTwice":   {"once each", "spec: {module: {name: a}, dependsOn: [{apiVersion: v1, kind: Pod, name: b}, {apiVersion: v1, kind: Pod, name: b}]}", "Duplicate value"},
		"DependsKind":    {"a kind is named", "spec: {module: {name: a}, dependsOn: [{name: b}]}", "kind: Required value"},
		"DependsSpace":   {"in the same namespace", "spec: {module: {name: a}, dependsOn: [{apiVersion: v1, kind: Pod, name: b, namespace: c}]}", "unknown field"},
		"ServiceAccount": {"work has an identity", "spec: {module: {name: a}, serviceAccountName: deployer}", ""},

		"Times":        {"times are durations", "spec: {module: {name: a}, interval: 1h30m, retryInterval: 1.5s, timeout: 60000ms}", ""},
		"Days":         {"a day is no unit", "spec: {module: {name: a}, interval: 1d}", "interval: Invalid value"},
		"Zero":         {"an interval is no loop", "spec: {module: {name: a}, interval: 0s}", "has to be 1s at least"},
		"ShortRetry":   {"a retry is no loop", "spec: {module: {name: a}, retryInterval: 10ms}", "has to be 1s at least"},
		"ShortTimeout": {"a timeout leaves time", "spec: {module: {name: a}, timeout: 1ms}", "has to be 1s at least"},
		"TooLong":      {"a time that Go cannot hold is refused", "spec: {module: {name: a}, interval: 9999999999999h}", "interval"},
	})
}

func TestInstallationTransitions(t *testing.T) {
	t.Parallel()
	testTransitions(t, modulesv1.ModuleInstallationKind, map[string]transition{
		"Channel":   {"another channel is chosen", "spec: {module: {name: a, channel: b}}", "spec: {module: {name: a, channel: c}}", ""},
		"ToVersion": {"a version takes the place of a channel", "spec: {module: {name: a, channel: b}}", "spec: {module: {name: a, version: 1.0.0}}", ""},
		"Older":     {"whether it may go back is not the schema's to say", "spec: {module: {name: a, version: 2.0.0}}", "spec: {module: {name: a, version: 1.0.0}}", ""},
		"ToName":    {"a name takes the place of a template", "spec: {module: {templateRef: {name: a-1}}}", "spec: {module: {name: a}}", ""},
		"Typo":      {"a wrong name can be corrected", "spec: {module: {name: redsi}}", "spec: {module: {name: redis}}", ""},
		"Second":    {"a second selector needs the first gone", "spec: {module: {name: a, channel: b}}", "spec: {module: {name: a, channel: b, latest: true}}", "at most one of"},
	})
}
