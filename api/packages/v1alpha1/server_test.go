package v1alpha1_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

const (
	commit1 = "1111111111111111111111111111111111111111"
	commit2 = "2222222222222222222222222222222222222222222222222222222222222222"
)

// manifests are those of the tests.
func manifests() testenv.Manifests {
	return testenv.Manifests{
		Env: env, Version: packagesv1.GroupVersion, Register: packagesv1.AddToScheme, Name: "web",
		Words: strings.NewReplacer("COMMIT1", "'"+commit1+"'", "COMMIT2", "'"+commit2+"'",
			"UP", "upstream: {repo: blueprints, package: web}", "DOWN", "downstream: {repo: edge}",
			"GIT", "gitRepositoryRef: {name: edge}", "ONE", "repository: edge, package: web, workspace: one"),
	}
}

type acceptance struct {
	reason string
	body   string
	want   string // words of the refusal; "" when the object is accepted
}

func testAcceptance(t *testing.T, kind string, cases map[string]acceptance) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests().Create(t, tc.reason, kind, tc.body, tc.want)
		})
	}
}

type transition struct {
	reason, before, after string
	want                  string // words of the refusal; "" when the edit is accepted
}

// testTransitions makes each object with its status, and then edits its spec.
func testTransitions(t *testing.T, kind string, cases map[string]transition) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests().Edit(t, tc.reason, kind, tc.before, tc.after, tc.want)
		})
	}
}

// TestDefaults: what the API server fills in.
func TestDefaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, kind, body string
		path               []string
		want               any
	}{
		"RepositoryUnobserved": {"a new repository was not seen yet", packagesv1.RepositoryKind, "spec: {GIT}", []string{"status", "observedGeneration"}, int64(-1)},
		"VariantUnobserved":    {"a new variant was not seen yet", packagesv1.PackageVariantKind, "spec: {UP, DOWN}", []string{"status", "observedGeneration"}, int64(-1)},
		"RevisionUnobserved":   {"a new revision was not seen yet", packagesv1.PackageRevisionKind, "spec: {ONE}", []string{"status", "observedGeneration"}, int64(-1)},
		"Branch":               {"packages are on main", packagesv1.RepositoryKind, "spec: {GIT}", []string{"spec", "branch"}, "main"},
		"Adoption":             {"nothing is taken over", packagesv1.PackageVariantKind, "spec: {UP, DOWN}", []string{"spec", "adoptionPolicy"}, "adoptNone"},
		"Deletion":             {"what is deleted goes", packagesv1.PackageVariantKind, "spec: {UP, DOWN}", []string{"spec", "deletionPolicy"}, "delete"},
		"Conflict":             {"people win", packagesv1.PackageVariantKind, "spec: {UP, DOWN}", []string{"spec", "conflictPolicy"}, "Local"},
		"Approval":             {"people approve", packagesv1.PackageVariantKind, "spec: {UP, DOWN, approval: {}}", []string{"spec", "approval", "policy"}, "Manual"},
		"Lifecycle":            {"a change begins as a draft", packagesv1.PackageRevisionKind, "spec: {ONE}", []string{"spec", "lifecycle"}, "Draft"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := manifests().Parse(t, tc.kind, tc.body)
			if err := env.Client.Create(t.Context(), object, client.DryRunAll, testenv.Strict()); err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedFieldNoCopy(object.Object, tc.path...)
			if err != nil || got != tc.want {
				t.Errorf("%s\n%s: want %v, got %v (%v)", tc.reason, strings.Join(tc.path, "."), tc.want, got, err)
			}
		})
	}
}

// TestStatusThatCannotBeHeldIsRefused: whoever may write a status cannot make the kind unreadable with it.
func TestStatusThatCannotBeHeldIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, kind, spec, body, want string
	}{
		"Time":      {"a time as Kubernetes writes it", packagesv1.RepositoryKind, "spec: {GIT}", `{"lastSyncTime":"2026-01-01T00:00:00Z"}`, ""},
		"LowerTime": {"RFC 3339 allows lower case, Go does not", packagesv1.RepositoryKind, "spec: {GIT}", `{"lastSyncTime":"2026-01-01t00:00:00z"}`, "lastSyncTime"},
		"Seen":      {"a generation fits an int64", packagesv1.RepositoryKind, "spec: {GIT}", `{"observedGeneration":1e19}`, "observedGeneration"},
		"Packages":  {"a count fits an int32", packagesv1.RepositoryKind, "spec: {GIT}", `{"packages":2147483648}`, "packages"},
		"Negative":  {"a count is not negative", packagesv1.RepositoryKind, "spec: {GIT}", `{"openChanges":-1}`, "openChanges"},
		"Revision":  {"a number fits an int32", packagesv1.PackageRevisionKind, "spec: {ONE}", `{"revision":2147483648}`, "revision"},
		"Lifecycle": {"there are four", packagesv1.PackageRevisionKind, "spec: {ONE}", `{"lifecycle":"Done"}`, "Unsupported value"},
		"Gate":      {"a condition has three states", packagesv1.PackageRevisionKind, "spec: {ONE}", `{"packageConditions":[{"type":"A","status":"Maybe"}]}`, "Unsupported value"},
		"Conflicts": {
			"a report is bounded", packagesv1.PackageVariantKind, "spec: {UP, DOWN}",
			`{"change":{"conflicts":[` + strings.TrimSuffix(strings.Repeat(`{"file":"a"},`, packagesv1.MaxConflicts+1), ",") + `]}}`, "Too many",
		},
		"Value": {
			"a value is cut", packagesv1.PackageVariantKind, "spec: {UP, DOWN}",
			`{"change":{"conflicts":[{"file":"a","local":"` + strings.Repeat("a", packagesv1.MaxConflictValue+1) + `"}]}}`, "Too long",
		},
		"Full": {
			"what fits is taken", packagesv1.PackageVariantKind, "spec: {UP, DOWN}",
			`{"change":{"conflictCount":40,"conflicts":[` + strings.TrimSuffix(strings.Repeat(`{"file":"a"},`, packagesv1.MaxConflicts), ",") + `]}}`, "",
		},
	}
	namespace := env.NewNamespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := manifests().Parse(t, tc.kind, tc.spec)
			object.SetName(strings.ToLower(name))
			object.SetNamespace(namespace)
			if err := env.Client.Create(t.Context(), object, testenv.Strict()); err != nil {
				t.Fatal(err)
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+tc.body+`}`))
			err := env.Client.Status().Patch(t.Context(), object, patch)
			manifests().Verdict(t, tc.reason, object, err, tc.want)
		})
	}
}

// TestRevisionsAreFoundByTheirFields: kubectl get --field-selector, and so may people's scripts.
func TestRevisionsAreFoundByTheirFields(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	for _, name := range []string{"web", "database"} {
		object := manifests().Parse(t, packagesv1.PackageRevisionKind, "spec: {repository: edge, package: "+name+", workspace: one}")
		object.SetName(name)
		object.SetNamespace(namespace)
		if err := env.Client.Create(t.Context(), object, testenv.Strict()); err != nil {
			t.Fatal(err)
		}
	}
	for _, fields := range []client.MatchingFields{
		{"spec.package": "web"}, {"spec.package": "web", "spec.repository": "edge", "spec.workspace": "one"},
	} {
		var list packagesv1.PackageRevisionList
		if err := env.Client.List(t.Context(), &list, client.InNamespace(namespace), fields); err != nil {
			t.Fatal(err)
		}
		found := func(r packagesv1.PackageRevision) bool { return r.Name == "web" }
		if len(list.Items) != 1 || !slices.ContainsFunc(list.Items, found) {
			t.Errorf("%v: found %d", fields, len(list.Items))
		}
	}
}
