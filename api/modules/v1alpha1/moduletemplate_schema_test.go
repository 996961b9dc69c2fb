package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func TestTemplateAcceptance(t *testing.T) {
	t.Parallel()
	testAcceptance(t, modulesv1.ModuleTemplateKind, map[string]acceptance{
		"Minimal":     {"an old template has neither name nor version", "spec: {ARTIFACT1}", ""},
		"Usual":       {"a release as it is published", "spec: {moduleName: redis, version: 1.4.2, channel: regular, ARTIFACT1}", ""},
		"EmptyFields": {"old templates write the fields empty", "spec: {moduleName: '', version: '', channel: '', ARTIFACT1}", ""},
		"None":        {"none is in no channel", "spec: {moduleName: redis, version: 1.0.0, channel: none, ARTIFACT1}", ""},
		"NoSpec":      {"a template without spec says nothing", "metadata: {}", "spec: Required value"},
		"NoArtifact":  {"a release is its artifact", "spec: {moduleName: redis}", "spec.artifact: Required value"},
		"Unknown":     {"a typing error is no field", "spec: {moduleNames: redis, ARTIFACT1}", "unknown field"},

		"OneLetter":  {"a DNS label may be short", "spec: {moduleName: a, ARTIFACT1}", ""},
		"Digits":     {"names may have digits and dashes", "spec: {moduleName: s3-operator2, ARTIFACT1}", ""},
		"Longest":    {"63 characters fit", "spec: {moduleName: " + strings.Repeat("a", 63) + ", ARTIFACT1}", ""},
		"TooLong":    {"64 characters do not", "spec: {moduleName: " + strings.Repeat("a", 64) + ", ARTIFACT1}", "Too long"},
		"Upper":      {"DNS labels are lower case", "spec: {moduleName: Redis, ARTIFACT1}", "spec.moduleName: Invalid value"},
		"Dotted":     {"a DNS label has no dot", "spec: {moduleName: a.b, ARTIFACT1}", "spec.moduleName: Invalid value"},
		"DashAtEnd":  {"a DNS label ends in a letter or digit", "spec: {moduleName: a-, ARTIFACT1}", "spec.moduleName: Invalid value"},
		"BadChannel": {"a channel is a DNS label", "spec: {channel: Fast_1, ARTIFACT1}", "spec.channel: Invalid value"},

		"Prerelease":    {"dotted prereleases are SemVer", "spec: {version: 1.0.0-rc.1, ARTIFACT1}", ""},
		"NumericPre":    {"numeric prereleases are SemVer", "spec: {version: 1.0.0-1, ARTIFACT1}", ""},
		"Build":         {"build metadata is SemVer", "spec: {version: 1.0.0-alpha.beta+b1.2, ARTIFACT1}", ""},
		"DashPre":       {"a dash may stand in a prerelease", "spec: {version: 1.0.0--, ARTIFACT1}", ""},
		"LeadingV":      {"a leading v is no SemVer", "spec: {version: v1.0.0, ARTIFACT1}", "spec.version: Invalid value"},
		"TwoParts":      {"two numbers are no SemVer", "spec: {version: '1.0', ARTIFACT1}", "spec.version: Invalid value"},
		"LeadingZero":   {"a number has no leading zero", "spec: {version: 1.02.0, ARTIFACT1}", "spec.version: Invalid value"},
		"ZeroPre":       {"nor has one in the prerelease", "spec: {version: 1.0.0-01, ARTIFACT1}", "spec.version: Invalid value"},
		"EmptyPre":      {"a prerelease is not empty", "spec: {version: 1.0.0-, ARTIFACT1}", "spec.version: Invalid value"},
		"Overflow":      {"a number that does not fit cannot be compared", "spec: {version: 99999999999999999999.0.0, ARTIFACT1}", "have to fit 64 bits"},
		"VersionLength": {"a version is bounded", "spec: {version: 1.0.0-" + strings.Repeat("a", 251) + ", ARTIFACT1}", "Too long"},
		"VersionMost":   {"256 characters fit", "spec: {version: 1.0.0-" + strings.Repeat("a", 250) + ", ARTIFACT1}", ""},

		"Git":            {"a commit is an artifact", "spec: {artifact: {git: {url: 'https://example.com/r.git', commit: COMMIT1, tag: v1, secretRef: {name: x}}, path: deploy}}", ""},
		"SSH":            {"Git speaks SSH", "spec: {artifact: {git: {url: 'ssh://git@example.com/r.git', commit: COMMIT1}}}", ""},
		"SourceRef":      {"a source object has an artifact", "spec: {artifact: {sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: Bucket, name: x}}}", ""},
		"NoneOfThree":    {"one of three has to be set", "spec: {artifact: {path: x}}", "exactly one of oci, git and sourceRef"},
		"TwoOfThree":     {"only one of three may be set", "spec: {artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}, sourceRef: {apiVersion: v1, kind: A, name: x}}}", "exactly one of oci, git and sourceRef"},
		"AnotherSpace":   {"a source is in the same namespace", "spec: {artifact: {sourceRef: {apiVersion: v1, kind: A, name: x, namespace: y}}}", "unknown field"},
		"FullOCI":        {"all that reaches a registry", "spec: {artifact: {oci: {repository: 'oci://localhost:5000/a/b', digest: 'DIGEST1', tag: 1.0.0, provider: aws, secretRef: {name: a}, certSecretRef: {name: b}, proxySecretRef: {name: c}, serviceAccountName: d, insecure: true, layerSelector: {mediaType: application/x}}}}", ""},
		"Unpinned":       {"a tag moves", "spec: {artifact: {oci: {repository: 'oci://e.com/r', tag: latest}}}", "digest: Required value"},
		"UnpinnedGit":    {"a branch moves", "spec: {artifact: {git: {url: 'https://e.com/r', tag: v1}}}", "commit: Required value"},
		"ShortCommit":    {"a short commit is ambiguous", "spec: {artifact: {git: {url: 'https://e.com/r', commit: 1111111}}}", "commit"},
		"ShortDigest":    {"a digest is whole", "spec: {artifact: {oci: {repository: 'oci://e.com/r', digest: 'sha256:11'}}}", "digest: Invalid value"},
		"TagInURL":       {"a tag has no place in the repository", "spec: {artifact: {oci: {repository: 'oci://e.com/r:1', digest: 'DIGEST1'}}}", "repository: Invalid value"},
		"UserInURL":      {"nor has a user", "spec: {artifact: {oci: {repository: 'oci://me@e.com/r', digest: 'DIGEST1'}}}", "repository: Invalid value"},
		"NoScheme":       {"a repository begins with oci://", "spec: {artifact: {oci: {repository: 'e.com/r', digest: 'DIGEST1'}}}", "repository: Invalid value"},
		"GitScheme":      {"Git's own protocol proves nothing", "spec: {artifact: {git: {url: 'git://e.com/r', commit: COMMIT1}}}", "url: Invalid value"},
		"PathUp":         {"a path stays inside", "spec: {artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}, path: a/../../b}}", "path has to stay inside"},
		"PathRoot":       {"a path is relative", "spec: {artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}, path: /etc}}", "path has to stay inside"},
		"PathDots":       {"dots in a name are no way up", "spec: {artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}, path: ./a..b/..c}}", ""},
		"EmptySecretRef": {"a reference has a name", "spec: {artifact: {git: {url: 'https://e.com/r', commit: COMMIT1, secretRef: {name: ''}}}}", "secretRef.name"},

		"Managed":        {"managed resources are kinds", "spec: {ARTIFACT1, managedResources: [{group: cache.example.com, version: v1, kind: Redis}, {version: v1, kind: Secret}]}", ""},
		"ManagedTwice":   {"a kind is listed once", "spec: {ARTIFACT1, managedResources: [{group: a, version: v1, kind: B}, {group: a, version: v1, kind: B}]}", "Duplicate value"},
		"ManagedVersion": {"two versions of a kind are two entries", "spec: {ARTIFACT1, managedResources: [{group: a, version: v1, kind: B}, {group: a, version: v2, kind: B}]}", ""},
		"ManagedPath":    {"a group is a DNS name, and no path", "spec: {ARTIFACT1, managedResources: [{group: ../../api/v1, version: v1, kind: B}]}", "group: Invalid value"},
		"ManagedUpper":   {"a group is lower case", "spec: {ARTIFACT1, managedResources: [{group: A.io, version: v1, kind: B}]}", "group: Invalid value"},
		"ManagedDots":    {"nor has a group empty labels", "spec: {ARTIFACT1, managedResources: [{group: a..io, version: v1, kind: B}]}", "group: Invalid value"},
		"ManagedSlash":   {"a version is one word", "spec: {ARTIFACT1, managedResources: [{group: a, version: v1/b, kind: B}]}", "version: Invalid value"},
		"ManagedKindDot": {"a kind is one word", "spec: {ARTIFACT1, managedResources: [{group: a, version: v1, kind: B/c}]}", "kind: Invalid value"},
		"ManagedKind":    {"a kind has a name", "spec: {ARTIFACT1, managedResources: [{group: a, version: v1}]}", "kind: Required value"},
		"Block":          {"data blocks", "spec: {ARTIFACT1, deletion: {mode: Block}}", ""},
		"Orphan":         {"everything is left", "spec: {ARTIFACT1, deletion: {mode: Orphan}}", ""},
		"Cascade":        {"data is not deleted yet", "spec: {ARTIFACT1, deletion: {mode: Cascade}}", "Unsupported value"},
		"Config":         {"any object may be the default", "spec: {ARTIFACT1, defaultConfig: {apiVersion: a/v1, kind: Redis, metadata: {name: x}, spec: {any: [1, {b: c}]}}}", ""},
		"ConfigNoKind":   {"the default is an object", "spec: {ARTIFACT1, defaultConfig: {spec: {}}}", "defaultConfig"},
		"Health":         {"health is an expression", "spec: {ARTIFACT1, health: {expressions: [{apiVersion: a/v1, kind: B, current: 'status.ok', failed: '!status.ok'}]}}", ""},
		"HealthEmpty":    {"an expression tells when all is well", "spec: {ARTIFACT1, health: {expressions: [{apiVersion: a/v1, kind: B}]}}", "current: Required value"},
		"Support":        {"support has an end", "spec: {ARTIFACT1, support: {state: Deprecated, message: old, until: '2027-06-30', replacedBy: 2.0.0}}", ""},
		"Withdrawn":      {"a release can be withdrawn", "spec: {ARTIFACT1, support: {state: Withdrawn}}", ""},
		"SupportState":   {"there are three states", "spec: {ARTIFACT1, support: {state: Retired}}", "Unsupported value"},
		"Until":          {"the end is a day", "spec: {ARTIFACT1, support: {until: '2027-06-30T00:00:00Z'}}", "until"},
		"UntilNever":     {"the day exists", "spec: {ARTIFACT1, support: {until: '2027-02-30'}}", "until"},
		"ReplacedBy":     {"a replacement is a version", "spec: {ARTIFACT1, support: {replacedBy: 2.x}}", "replacedBy"},
		"Requires":       {"requirements come later", "spec: {ARTIFACT1, requires: {kubernetes: '>=1.29.0'}}", "unknown field"},
		"Upgrade":        {"hops come later", "spec: {ARTIFACT1, upgrade: {from: '>=1.2.0'}}", "unknown field"},
	})
}

// TestInstalledTemplatesKeepTheirContent: from the first time on that an installation has begun to apply the release.
func TestInstalledTemplatesKeepTheirContent(t *testing.T) {
	t.Parallel()
	installed := templateEdits()
	for name, edit := range installed {
		version, _, _ := unstructured.NestedString(manifests().Parse(t, modulesv1.ModuleTemplateKind, edit.before).Object, "spec", "version")
		edit.before += "\nstatus: {installed: {version: '" + version + "', content: x}}"
		installed[name] = edit
	}
	testTransitions(t, modulesv1.ModuleTemplateKind, installed)
}

// TestWhatNobodyInstalledMayBeCorrected: only what is no version at all is refused.
func TestWhatNobodyInstalledMayBeCorrected(t *testing.T) {
	t.Parallel()
	free, raised := templateEdits(), templateEdits()
	for name, edit := range free {
		if edit.want != notSemver && edit.want != overflow {
			edit.want = ""
		}
		free[name] = edit
		stated, _, _ := unstructured.NestedString(manifests().Parse(t, modulesv1.ModuleTemplateKind, edit.before).Object, "spec", "version")
		if stated == "" || strings.HasPrefix(name, "Module") || strings.HasPrefix(name, "Channel") {
			delete(raised, name)
			continue
		}
		// An older version of the template was installed, and the one that it states now was not.
		edit.before += "\nstatus: {installed: {version: 0.0.1, content: x}}"
		raised[name] = edit
	}
	testTransitions(t, modulesv1.ModuleTemplateKind, free)
	t.Run("Raised", func(t *testing.T) { testTransitions(t, modulesv1.ModuleTemplateKind, raised) })
}

const (
	notSemver = "spec.version: Invalid value"
	overflow  = "64 bits"
)

// templateEdits are edits of templates that were installed.
func templateEdits() map[string]transition {
	const (
		content = "a version that was installed keeps its content"
		higher  = "a version that was installed may only become higher"
		module  = "moduleName is immutable once the template was installed"
		channel = "channel is immutable once the template was installed"
	)
	return map[string]transition{
		"Same":           {"an edit of nothing", "spec: {moduleName: a, version: 1.0.0, channel: fast, ARTIFACT1}", "spec: {moduleName: a, version: 1.0.0, channel: fast, ARTIFACT1}", ""},
		"Higher":         {"a template moves up", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 2.0.0, ARTIFACT2}", ""},
		"HigherPatch":    {"the last number counts as a number", "spec: {version: 1.0.9, ARTIFACT1}", "spec: {version: 1.0.10, ARTIFACT2}", ""},
		"HigherPre":      {"a prerelease is below its release", "spec: {version: 1.0.0-rc.1, ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT2}", ""},
		"HigherPreNext":  {"prereleases are in order", "spec: {version: 1.0.0-rc.9, ARTIFACT1}", "spec: {version: 1.0.0-rc.10, ARTIFACT2}", ""},
		"SameOther":      {"a version keeps its bytes", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT2}", content},
		"SamePath":       {"another folder is another release", "spec: {version: 1.0.0, artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}, path: a}}", "spec: {version: 1.0.0, artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}, path: b}}", content},
		"SameSource":     {"another source is another release", "spec: {version: 1.0.0, artifact: {sourceRef: {apiVersion: v1, kind: A, name: x}}}", "spec: {version: 1.0.0, artifact: {sourceRef: {apiVersion: v1, kind: A, name: z}}}", content},
		"SameTag":        {"a version counts for more than a tag", "spec: {version: 1.0.0, TAGGED1}", "spec: {version: 1.0.0, TAGGED2}", content},
		"Lower":          {"a template does not move down", "spec: {version: 2.0.0, ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT2}", higher},
		"LowerPre":       {"not to a prerelease of the same either", "spec: {version: 2.0.0, ARTIFACT1}", "spec: {version: 2.0.0-rc.1, ARTIFACT2}", higher},
		"LowerSame":      {"nor with the same bytes", "spec: {version: 2.0.0, ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT1}", higher},
		"BuildOnly":      {"build metadata makes nothing higher", "spec: {version: 1.0.0+1, ARTIFACT1}", "spec: {version: 1.0.0+2, ARTIFACT2}", higher},
		"HigherSame":     {"one artifact is one version", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 2.0.0, ARTIFACT1}", content},
		"VersionGone":    {"a version is not taken back", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {ARTIFACT1}", higher},
		"VersionEmptied": {"an empty version is none", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: '', ARTIFACT1}", higher},
		"GoneOther":      {"without a version, no other bytes either", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {ARTIFACT2}", higher},
		"NotSemver":      {"the new version is a version", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: two, ARTIFACT2}", notSemver},
		"Overflow":       {"the new version can be compared", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 99999999999999999999.0.0, ARTIFACT2}", overflow},

		"OldGetsVersion":   {"an old template is completed", "spec: {ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT1}", ""},
		"EmptyGetsVersion": {"so is one that writes it empty", "spec: {version: '', ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT1}", ""},
		"OldMoves":         {"an old template moves by being given a version", "spec: {ARTIFACT1}", "spec: {version: 2.0.0, ARTIFACT2}", ""},
		"OldSwaps":         {"without a version in spec, status is what its bytes are compared with", "spec: {channel: regular, ARTIFACT1}", "spec: {channel: regular, ARTIFACT2}", ""},
		"OldTagMoves":      {"a tag that is a version is one", "spec: {channel: regular, TAGGED1}", "spec: {channel: regular, TAGGED2}", ""},
		"OldTagBack":       {"an annotation may have the last word on which way it moves", "spec: {channel: regular, TAGGED2}", "spec: {channel: regular, TAGGED1}", ""},
		"OldTagGone":       {"or say what the tag said", "spec: {channel: regular, TAGGED1}", "spec: {channel: regular, ARTIFACT2}", ""},
		"OldTagToVersion":  {"the new version is above the old tag", "spec: {channel: regular, TAGGED1}", "spec: {channel: regular, version: 3.0.0, ARTIFACT2}", ""},
		"OldTagToLower":    {"or have said less", "spec: {channel: regular, TAGGED2}", "spec: {channel: regular, version: 1.5.0, ARTIFACT1}", ""},
		"OldTagNamed":      {"the annotation may say other than the tag", "spec: {TAGGED1}", "spec: {version: 1.2.3, TAGGED1}", ""},
		"OldGetsTag":       {"a tag is a version", "spec: {channel: regular, ARTIFACT1}", "spec: {channel: regular, TAGGED2}", ""},

		"ModuleNamed":    {"an old template gets its name", "spec: {ARTIFACT1}", "spec: {moduleName: a, ARTIFACT1}", ""},
		"ModuleEmptied":  {"a name is not taken back", "spec: {moduleName: a, ARTIFACT1}", "spec: {moduleName: '', ARTIFACT1}", module},
		"ModuleGone":     {"nor left out", "spec: {moduleName: a, ARTIFACT1}", "spec: {ARTIFACT1}", module},
		"ModuleChanged":  {"another module is another template", "spec: {moduleName: a, ARTIFACT1}", "spec: {moduleName: b, ARTIFACT1}", module},
		"ModuleHigher":   {"a higher version does not change that", "spec: {moduleName: a, version: 1.0.0, ARTIFACT1}", "spec: {moduleName: b, version: 2.0.0, ARTIFACT2}", module},
		"ChannelChanged": {"a claim stays", "spec: {channel: fast, ARTIFACT1}", "spec: {channel: regular, ARTIFACT1}", channel},
		"ChannelAdded":   {"no claim is made later", "spec: {ARTIFACT1}", "spec: {channel: fast, ARTIFACT1}", channel},
		"ChannelGone":    {"nor given up", "spec: {channel: fast, ARTIFACT1}", "spec: {ARTIFACT1}", channel},
		"ChannelToNone":  {"nor by another word", "spec: {channel: fast, ARTIFACT1}", "spec: {channel: none, ARTIFACT1}", channel},
		"NoneToEmpty":    {"none and empty are the same", "spec: {channel: none, ARTIFACT1}", "spec: {channel: '', ARTIFACT1}", ""},
		"NoneToAbsent":   {"so is absent", "spec: {channel: none, ARTIFACT1}", "spec: {ARTIFACT1}", ""},
		"AbsentToNone":   {"in both directions", "spec: {ARTIFACT1}", "spec: {channel: none, ARTIFACT1}", ""},

		"Withdraw":  {"support changes at any time", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT1, support: {state: Withdrawn}}", ""},
		"Managed":   {"a forgotten kind can be added", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 1.0.0, ARTIFACT1, managedResources: [{version: v1, kind: A}]}", ""},
		"Secret":    {"how the artifact is reached is no content", "spec: {version: 1.0.0, artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}}}", "spec: {version: 1.0.0, artifact: {git: {url: 'https://f.com/r', commit: COMMIT1, secretRef: {name: x}}}}", ""},
		"Registry":  {"a registry may move", "spec: {version: 1.0.0, artifact: {oci: {repository: 'oci://e.com/r', digest: 'DIGEST1'}}}", "spec: {version: 1.0.0, artifact: {oci: {repository: 'oci://f.com/r', digest: 'DIGEST1', tag: x, insecure: true, provider: aws, secretRef: {name: a}, proxySecretRef: {name: b}}}}", ""},
		"Layer":     {"another layer is other content", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 1.0.0, artifact: {oci: {repository: 'oci://registry.example.com/mods/redis', digest: 'DIGEST1', layerSelector: {mediaType: application/x}}}}", content},
		"OtherKind": {"an artifact may move to another kind with a version", "spec: {version: 1.0.0, ARTIFACT1}", "spec: {version: 1.1.0, artifact: {git: {url: 'https://e.com/r', commit: COMMIT1}}}", ""},
	}
}
