package v1alpha1_test

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

func TestSetAcceptance(t *testing.T) {
	t.Parallel()
	const (
		one  = "exactly one of repositories, repositorySelector and objectSelector"
		only = "only one of"
	)
	set := func(targets string) string { return "spec: {UP, targets: [" + targets + "]}" }
	template := func(fields string) string { return set("{repositories: [{name: a}], template: {" + fields + "}}") }
	rollout := func(fields string) string {
		return "spec: {UP, targets: [{repositorySelector: {}}], rollout: {" + fields + "}}"
	}
	testAcceptance(t, packagesv1.PackageVariantSetKind, map[string]acceptance{
		"Named":         {"Repositories are named", set("{repositories: [{name: a, packageNames: [b, c/d]}]}"), ""},
		"Selected":      {"or selected", set("{repositorySelector: {matchLabels: {a: b}}}"), ""},
		"All":           {"all of them", set("{repositorySelector: {}}"), ""},
		"Objects":       {"objects are selected", set("{objectSelector: {apiVersion: v1, kind: ConfigMap, matchExpressions: [{key: a, operator: Exists}]}}"), ""},
		"Object":        {"or one is named", set("{objectSelector: {apiVersion: v1, kind: ConfigMap, name: a}}"), ""},
		"NoTargets":     {"a set has targets", "spec: {UP}", "targets: Required value"},
		"Empty":         {"a set has targets", set(""), "should have at least 1 items"},
		"Nothing":       {"a target is something", set("{template: {}}"), one},
		"Two":           {"a target is one thing", set("{repositories: [{name: a}], repositorySelector: {}}"), one},
		"NoKind":        {"objects are of a kind", set("{objectSelector: {apiVersion: v1}}"), "kind: Required value"},
		"Twice":         {"a Repository is named once", set("{repositories: [{name: a}, {name: a}]}"), "Duplicate value"},
		"Exprs":         {"what depends on the target is an expression", template("downstream: {repoExpr: a, packageExpr: b}, labelExprs: [{keyExpr: a, value: ''}], packageContext: {dataExprs: [{key: a, valueExpr: b}], removeKeyExprs: [c]}, injectors: [{nameExpr: a}], pipeline: {mutators: [{image: set-labels, configMapExprs: [{key: a, valueExpr: b}]}]}"), ""},
		"RepoTwice":     {"a field is set once", template("downstream: {repo: a, repoExpr: b}"), only},
		"PackageTwice":  {"a field is set once", template("downstream: {package: a, packageExpr: b}"), only},
		"InjectorTwice": {"an object is chosen once", template("injectors: [{name: a, nameExpr: b}]"), only},
		"Bindings":      {"what is bound depends on the target", template("bindings: [{name: a, from: {object: {apiVersion: v1, kind: A, nameExpr: b}}, path: c}, {name: b, from: {literalExpr: c}, type: integer}]"), ""},
		"BindingTwice":  {"an object is chosen once", template("bindings: [{name: a, from: {object: {apiVersion: v1, kind: A, name: b, nameExpr: c}}}]"), only},
		"BindingBoth":   {"a value is in one place", template("bindings: [{name: a, from: {literal: b, literalExpr: c}}]"), "at most 1"},
		"NoKey":         {"an entry has a key", template("labelExprs: [{value: a}]"), "exactly one of key and keyExpr"},
		"KeyTwice":      {"an entry has one key", template("labelExprs: [{key: a, keyExpr: b, value: c}]"), "exactly one of key and keyExpr"},
		"NoValue":       {"an entry has a value", template("annotationExprs: [{key: a}]"), "exactly one of value and valueExpr"},
		"LabelOurs":     {"nobody says whose a package is", template("labels: {packages.sluice.dev/a: b}"), "are the controller's"},
		"Guard":         {"a guard is a percentage", "spec: {UP, targets: [{repositorySelector: {}}], deletionGuard: {minPercent: 0}}", ""},
		"GuardAbove":    {"a guard is a percentage", "spec: {UP, targets: [{repositorySelector: {}}], deletionGuard: {minPercent: 101}}", "minPercent"},
		"Grace":         {"a grace period may be none", "spec: {UP, targets: [{repositorySelector: {}}], deletionGuard: {gracePeriod: 0s}}", ""},
		"GraceText":     {"and is a time", "spec: {UP, targets: [{repositorySelector: {}}], deletionGuard: {gracePeriod: soon}}", "gracePeriod"},
		"Waves":         {"a rollout has waves", rollout("waves: [{name: a, selector: {matchLabels: {a: b}}, maxInFlight: 1, pause: true, soak: 1h}, {name: b, maxInFlight: 100%}], gates: [{readyExpr: 'true'}, {object: {apiVersion: v1, kind: ConfigMap, name: a}}], onFailure: Continue"), ""},
		"NoWaves":       {"and some of them", rollout("waves: []"), "should have at least 1 items"},
		"WaveTwice":     {"each of a name", rollout("waves: [{name: a}, {name: a}]"), "Duplicate value"},
		"WaveNoName":    {"that can be told", rollout("waves: [{name: '(others)'}]"), "waves[0].name"},
		"FlightNone":    {"something is in flight", rollout("waves: [{name: a, maxInFlight: 0}]"), "from 1% to 100%"},
		"FlightPercent": {"a percentage is one", rollout("waves: [{name: a, maxInFlight: 101%}]"), "from 1% to 100%"},
		"FlightText":    {"and nothing else", rollout("waves: [{name: a, maxInFlight: '3'}]"), "from 1% to 100%"},
		"Soak":          {"a soak is a time", rollout("waves: [{name: a, soak: long}]"), "soak"},
		"GateNothing":   {"a gate is something", rollout("waves: [{name: a}], gates: [{}]"), "exactly one of readyExpr and object"},
		"GateBoth":      {"and one thing", rollout("waves: [{name: a}], gates: [{readyExpr: a, object: {apiVersion: v1, kind: A, name: a}}]"), "exactly one of readyExpr and object"},
		"OnFailure":     {"a failure stops or does not", rollout("waves: [{name: a}], onFailure: Retry"), "onFailure"},
		"Commit":        {"a set may be held at a commit", "spec: {upstream: {repo: a, package: b, branch: main, commit: abcdef0123abcdef0123abcdef0123abcdef0123}, targets: [{repositorySelector: {}}]}", ""},
		"CommitAlone":   {"which is known by something", "spec: {upstream: {repo: a, package: b, commit: abcdef0123abcdef0123abcdef0123abcdef0123}, targets: [{repositorySelector: {}}]}", "commit needs one of"},
		"CommitRange":   {"that is not any version", "spec: {upstream: {repo: a, package: b, range: 1.x, commit: abcdef0123abcdef0123abcdef0123abcdef0123}, targets: [{repositorySelector: {}}]}", "commit needs one of"},
		"CommitShort":   {"and is whole", "spec: {upstream: {repo: a, package: b, branch: main, commit: 0a1b}, targets: [{repositorySelector: {}}]}", "upstream.commit"},
		"Unknown":       {"what is not there is not ignored", set("{repositorySelector: {}, weight: 1}"), "unknown field"},
		"RevisionTag":   {"upstream is that of a variant", "spec: {upstream: {repo: a, package: b, revision: 1, tag: a}, targets: [{repositorySelector: {}}]}", "at most one of revision"},
	})
}
