package v1alpha1_test

import (
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

func TestVariantAcceptance(t *testing.T) {
	t.Parallel()
	const (
		one    = "at most one of revision, tag, branch and range"
		unsafe = "Git takes no such name"
		own    = "are the package's own"
	)
	upstream := func(more string) string { return "spec: {upstream: {repo: a, package: b, " + more + "}, DOWN}" }
	bindings := func(all string) string { return "spec: {UP, DOWN, bindings: [" + all + "]}" }
	testAcceptance(t, packagesv1.PackageVariantKind, map[string]acceptance{
		"Least":         {"two names and a path", "spec: {UP, DOWN}", ""},
		"Revision":      {"a number is a revision", upstream("revision: 3"), ""},
		"Tag":           {"a tag is followed", upstream("tag: v1.2.0"), ""},
		"Branch":        {"a branch is followed", upstream("branch: next"), ""},
		"Range":         {"a range chooses", upstream("range: '>=1.4.0 <2.0.0 || ~3.1.0, !=3.1.4 ^4.0.0 5.*'"), ""},
		"Nested":        {"a package may lie deep", "spec: {upstream: {repo: a, package: b/c/d}, downstream: {repo: a, package: e/f}}", ""},
		"NoSpec":        {"a variant is one of something", "metadata: {}", "spec: Required value"},
		"NoUpstream":    {"a variant is one of something", "spec: {DOWN}", "upstream: Required value"},
		"NoDownstream":  {"a variant is somewhere", "spec: {UP}", "downstream: Required value"},
		"NoPackage":     {"a package is named", "spec: {upstream: {repo: a}, DOWN}", "package: Required value"},
		"NoRepo":        {"a repository is named", "spec: {UP, downstream: {package: a}}", "repo: Required value"},
		"RevisionTag":   {"one is enough", upstream("revision: 3, tag: a"), one},
		"TagBranch":     {"one is enough", upstream("tag: a, branch: b"), one},
		"BranchRange":   {"one is enough", upstream("branch: b, range: 1.x"), one},
		"RevisionRange": {"one is enough", upstream("revision: 1, range: 1.x"), one},
		"All":           {"one is enough", upstream("revision: 1, tag: a, branch: b, range: 1.x"), one},
		"Zero":          {"revisions begin with 1", upstream("revision: 0"), "revision"},
		"VRevision":     {"a revision is a number", upstream("revision: v3"), "revision"},
		"EmptyTag":      {"an empty tag is a typing error", upstream("tag: ''"), "tag"},
		"EmptyRange":    {"an empty range is a typing error", upstream("range: ''"), "range"},
		"Script":        {"a range is no script", upstream("range: '$(x)'"), "range: Invalid value"},
		"Absolute":      {"a package is in the directory", "spec: {upstream: {repo: a, package: /b}, DOWN}", "package: Invalid value"},
		"Up":            {"a package is in the directory", "spec: {UP, downstream: {repo: a, package: ../b}}", "package: Invalid value"},
		"Hidden":        {"a package is no hidden folder", "spec: {UP, downstream: {repo: a, package: a/.git}}", "package: Invalid value"},
		"Lock":          {"no branch has such a name", "spec: {UP, downstream: {repo: a, package: a.lock/b}}", unsafe},
		"Dots":          {"no branch has such a name", "spec: {UP, downstream: {repo: a, package: a..b}}", unsafe},
		"At":            {"no branch has such a name", "spec: {UP, downstream: {repo: a, package: 'a@{b'}}", unsafe},
		"Workspace":     {"a workspace is no selector", upstream("workspaceName: a"), "unknown field"},

		"Context":        {"keys are set and removed", "spec: {UP, DOWN, packageContext: {data: {a: b}, removeKeys: [c]}}", ""},
		"ContextName":    {"the name is the package's", "spec: {UP, DOWN, packageContext: {data: {name: b}}}", own},
		"ContextPath":    {"so is its path", "spec: {UP, DOWN, packageContext: {data: {package-path: b}}}", own},
		"RemoveName":     {"they cannot be removed", "spec: {UP, DOWN, packageContext: {removeKeys: [name]}}", own},
		"RemovePath":     {"they cannot be removed", "spec: {UP, DOWN, packageContext: {removeKeys: [a, package-path]}}", own},
		"SetAndRemove":   {"a key is set or removed", "spec: {UP, DOWN, packageContext: {data: {a: b}, removeKeys: [a]}}", "either in data or in removeKeys"},
		"RemoveTwice":    {"a key is removed once", "spec: {UP, DOWN, packageContext: {removeKeys: [a, a]}}", "Duplicate value"},
		"LabelOurs":      {"nobody says whose a package is", "spec: {UP, DOWN, labels: {packages.sluice.dev/a: b}}", "are the controller's"},
		"AnnotationOurs": {"nobody says whose a package is", "spec: {UP, DOWN, annotations: {packages.sluice.dev/variant: b}}", "are the controller's"},
		"Annotation":     {"others are free", "spec: {UP, DOWN, labels: {a: b}, annotations: {example.com/a: 'b c'}}", ""},

		"Pipeline": {
			"functions are added", "spec: {UP, DOWN, pipeline: {mutators: [{image: set-labels, name: a.b, configMap: {a: b}, selectors: [{kind: A, labels: {a: b}}]," +
				" exclude: [{name: c}]}, {image: 'ghcr.io/a/apply-setters:v1', configPath: a/setters.yaml}], validators: [{image: a}]}}", "",
		},
		"NoImage":     {"a function is named", "spec: {UP, DOWN, pipeline: {mutators: [{name: a}]}}", "image: Required value"},
		"Exec":        {"nothing is executed", "spec: {UP, DOWN, pipeline: {mutators: [{image: a, exec: ./a}]}}", "unknown field"},
		"BothConfigs": {"a function has one configuration", "spec: {UP, DOWN, pipeline: {mutators: [{image: a, configPath: a, configMap: {a: b}}]}}", "only one of configPath and configMap"},
		"PathUp":      {"a file is in the package", "spec: {UP, DOWN, pipeline: {mutators: [{image: a, configPath: a/../../b}]}}", "inside the package"},
		"PathRoot":    {"a file is in the package", "spec: {UP, DOWN, pipeline: {mutators: [{image: a, configPath: /a}]}}", "configPath: Invalid value"},
		"NoSelection": {"a selector selects", "spec: {UP, DOWN, pipeline: {mutators: [{image: a, selectors: [{}]}]}}", "at least 1"},
		"Many":        {"a pipeline is bounded", "spec: {UP, DOWN, pipeline: {mutators: [" + strings.TrimSuffix(strings.Repeat("{image: a},", 33), ",") + "]}}", "Too many"},

		"Injectors": {
			"objects are named or selected", "spec: {UP, DOWN, injectors: [{kind: ConfigMap, name: a}, {group: '', version: v1, kind: Secret, point: b, namespace: c, allowSecrets: true}," +
				" {group: example.com, labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}}, {}]}", "",
		},
		"BothObjects": {"an object is named or selected", "spec: {UP, DOWN, injectors: [{name: a, labelSelector: {}}]}", "only one of name and labelSelector"},
		"Bindings": {
			"values are anywhere", bindings("{name: a, from: {literal: {b: [1, true]}}}, {name: b, from: {object: {apiVersion: apps/v1, kind: A, labelSelector: {}}}, path: spec.a, type: list, allowSecrets: true}," +
				" {name: c.D_e, from: {packageContext: a}}, {name: d, from: {packageObject: {kind: A, name: b, file: c.yaml}}, path: spec}"), "",
		},
		"BindingFalse":  {"no is a value", bindings("{name: a, from: {literal: false}}"), ""},
		"BindingNull":   {"nothing is no value", bindings("{name: a, from: {literal: null}}"), "at least 1 properties"},
		"BindingInKind": {"an object of the package is of a kind", bindings("{name: a, from: {packageObject: {kind: a/b, name: c}}}"), "kind: Invalid value"},
		"BindingInAPI":  {"and of a version", bindings("{name: a, from: {packageObject: {apiVersion: 'a/b/c', kind: A, name: c}}}"), "apiVersion: Invalid value"},
		"BindingIn":     {"a namespace is a label", bindings("{name: a, from: {packageObject: {kind: A, name: c, namespace: a.b}}}"), "namespace: Invalid value"},
		"BindingTwice":  {"a point is bound once", bindings("{name: a, from: {literal: b}}, {name: a, from: {literal: c}}"), "Duplicate value"},
		"BindingNoName": {"a point is named", bindings("{from: {literal: b}}"), "name: Required value"},
		"BindingName":   {"a point has a plain name", bindings("{name: a/b, from: {literal: b}}"), "name: Invalid value"},
		"BindingFrom":   {"a value is somewhere", bindings("{name: a}"), "from: Required value"},
		"BindingNone":   {"a value is somewhere", bindings("{name: a, from: {}}"), "at least 1"},
		"BindingBoth":   {"a value is in one place", bindings("{name: a, from: {literal: b, packageContext: c}}"), "at most 1"},
		"BindingPath":   {"a text has no paths", bindings("{name: a, from: {literal: b}, path: c}"), "path leads into an object"},
		"BindingType":   {"types are few", bindings("{name: a, from: {literal: b}, type: text}"), "Unsupported value"},
		"BindingObject": {"an object is named or selected", bindings("{name: a, from: {object: {apiVersion: v1, kind: A, name: b, labelSelector: {}}}}"), "only one of name and labelSelector"},
		"BindingKind":   {"an object is of a kind", bindings("{name: a, from: {object: {apiVersion: v1, name: b}}}"), "kind: Required value"},

		"EmptyKind": {"an empty kind is a typing error", "spec: {UP, DOWN, injectors: [{kind: ''}]}", "kind"},
		"KindPath":  {"a kind is a word", "spec: {UP, DOWN, injectors: [{kind: ../a}]}", "kind: Invalid value"},

		"Policies": {
			"all is said", "spec: {UP, DOWN, namespace: a, adoptionPolicy: adoptExisting, deletionPolicy: orphan, approval: {policy: Always}, conflictPolicy: Fail," +
				" serviceAccountName: a.b, dryRun: true, suspend: true, interval: 1h30m, timeout: 10s}", "",
		},
		"Namespace": {"a namespace is a label", "spec: {UP, DOWN, namespace: A}", "namespace: Invalid value"},
		"Adoption":  {"there are two", "spec: {UP, DOWN, adoptionPolicy: AdoptNone}", "Unsupported value"},
		"Deletion":  {"there are two", "spec: {UP, DOWN, deletionPolicy: Delete}", "Unsupported value"},
		"Approval":  {"there are three", "spec: {UP, DOWN, approval: {policy: Never}}", "Unsupported value"},
		"Conflict":  {"there are three", "spec: {UP, DOWN, conflictPolicy: Merge}", "Unsupported value"},
		"Account":   {"an account is a name", "spec: {UP, DOWN, serviceAccountName: 'a:b'}", "serviceAccountName: Invalid value"},
		"Soon":      {"an interval is no loop", "spec: {UP, DOWN, interval: 0s}", "1s at least"},
	})
}

// TestVariantsMayMove: nothing of a variant is immutable; what it leaves is dealt with.
func TestVariantsMayMove(t *testing.T) {
	t.Parallel()
	testTransitions(t, packagesv1.PackageVariantKind, map[string]transition{
		"Downstream": {"a package may be kept elsewhere", "spec: {UP, DOWN}", "spec: {UP, downstream: {repo: other, package: b}}", ""},
		"Upstream":   {"or be another", "spec: {UP, DOWN}", "spec: {upstream: {repo: other, package: b, revision: 3}, DOWN}", ""},
		"Selection":  {"and be selected in another way", "spec: {upstream: {repo: a, package: b, tag: a}, DOWN}", "spec: {upstream: {repo: a, package: b, range: 1.x}, DOWN}", ""},
	})
}
