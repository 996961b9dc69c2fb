package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

const (
	digest1 = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	digest2 = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	commit1 = "1111111111111111111111111111111111111111"

	// artifact1 and artifact2 are two artifacts; tagged1 and tagged2 have a tag that is a version.
	artifact1 = "artifact: {oci: {repository: oci://registry.example.com/mods/redis, digest: '" + digest1 + "'}}"
	artifact2 = "artifact: {oci: {repository: oci://registry.example.com/mods/redis, digest: '" + digest2 + "'}}"
	tagged1   = "artifact: {oci: {repository: oci://registry.example.com/mods/redis, digest: '" + digest1 + "', tag: 1.0.0}}"
	tagged2   = "artifact: {oci: {repository: oci://registry.example.com/mods/redis, digest: '" + digest2 + "', tag: 2.0.0}}"
)

// manifests are those of the tests.
func manifests() testenv.Manifests {
	return testenv.Manifests{
		Env: env, Version: modulesv1.GroupVersion, Register: modulesv1.AddToScheme, Name: "redis",
		Words: strings.NewReplacer("ARTIFACT1", artifact1, "ARTIFACT2", artifact2, "TAGGED1", tagged1, "TAGGED2", tagged2,
			"DIGEST1", digest1, "DIGEST2", digest2, "COMMIT1", "'"+commit1+"'"),
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
		"TemplateUnobserved": {"a new template was not seen yet", modulesv1.ModuleTemplateKind, "spec: {ARTIFACT1}", []string{"status", "observedGeneration"}, int64(-1)},
		"ModuleUnobserved":   {"a new module was not seen yet", modulesv1.ModuleKind, "spec: {}", []string{"status", "observedGeneration"}, int64(-1)},
		"InstallUnobserved":  {"a new installation was not seen yet", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}}", []string{"status", "observedGeneration"}, int64(-1)},
		"Catalog":            {"the catalogue is found", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}}", []string{"spec", "module", "catalog"}, "Auto"},
		"Management":         {"an installation acts", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}}", []string{"spec", "management"}, "Managed"},
		"UpgradeMode":        {"upgrades are automatic", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}, upgrade: {maxStep: Patch}}", []string{"spec", "upgrade", "mode"}, "Automatic"},
		"Prune":              {"a bound does not turn pruning off", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}, prune: {maxPercent: 5}}", []string{"spec", "prune", "enabled"}, true},
		"DefaultConfig":      {"a default configuration is created", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}, config: {substitute: {a: b}}}", []string{"spec", "config", "defaultConfig"}, "Create"},
		"Prereleases":        {"prereleases are out", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis, prereleases: {}}}", []string{"spec", "module", "prereleases", "policy"}, "Exclude"},
		"Deletion":           {"deletion is blocked", modulesv1.ModuleTemplateKind, "spec: {ARTIFACT1, deletion: {}}", []string{"spec", "deletion", "mode"}, "Block"},
		"Support":            {"a message withdraws nothing", modulesv1.ModuleTemplateKind, "spec: {ARTIFACT1, support: {message: x}}", []string{"spec", "support", "state"}, "Supported"},
		"Mode":               {"the template's mode counts", modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}, deletion: {mode: ''}}", []string{"spec", "deletion", "mode"}, ""},
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
	cases := map[string]acceptance{
		"Time":      {"a time as Kubernetes writes it", `{"current":{"appliedAt":"2026-01-01T00:00:00Z"}}`, ""},
		"Zone":      {"a time with a zone", `{"current":{"healthyAt":"2026-01-01T00:00:00+02:00"}}`, ""},
		"LowerTime": {"RFC 3339 allows lower case, Go does not", `{"current":{"appliedAt":"2026-01-01t00:00:00z"}}`, "appliedAt"},
		"LowerAt":   {"nor does it in a list", `{"history":[{"outcome":"Failed","at":"2026-01-01t00:00:00z"}]}`, "at"},
		"Seen":      {"a generation fits an int64", `{"observedGeneration":1e19}`, "observedGeneration"},
		"Members":   {"a count fits an int32", `{"inventory":{"name":"a","members":2147483648}}`, "members"},
		"Negative":  {"a count is not negative", `{"inventory":{"name":"a","members":-1}}`, "members"},
		"Outcome":   {"there are two outcomes", `{"history":[{"outcome":"RolledBack","at":"2026-01-01T00:00:00Z"}]}`, "Unsupported value"},
		"Condition": {"a condition's generation fits an int64", `{"conditions":[{"type":"A","status":"True","reason":"A","message":"","observedGeneration":1e19,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}`, "observedGeneration"},
	}
	namespace := env.NewNamespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := manifests().Parse(t, modulesv1.ModuleInstallationKind, "spec: {module: {name: redis}}")
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

// TestShortNames: the names that kubectl takes, as the API server tells them.
func TestShortNames(t *testing.T) {
	t.Parallel()
	for short, kind := range map[string]string{
		"mt": modulesv1.ModuleTemplateKind, "mod": modulesv1.ModuleKind,
		"mi": modulesv1.ModuleInstallationKind, "inv": modulesv1.InventoryKind,
	} {
		mapping, err := env.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: "modules.sluice.dev", Kind: kind}, "v1alpha1")
		if err != nil {
			t.Fatal(err)
		}
		crd := definition(t, mapping.Resource.Resource)
		if got := crd.Spec.Names.ShortNames; len(got) != 1 || got[0] != short {
			t.Errorf("%s: want the short name %q, got %q", kind, short, got)
		}
	}
}
