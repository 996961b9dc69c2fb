package kpt_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

const whole = `# The package of the web shop.
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web # as the folder
  labels:
    team: shop
  annotations:
    packages.sluice.dev/variant: apps/web
    packages.sluice.dev/base: none
upstream:
  type: git
  git:
    repo: https://git.example/blueprints.git
    directory: web
    ref: web/v1
  updateStrategy: resource-merge
upstreamLock:
  type: git
  git:
    repo: https://git.example/blueprints.git
    directory: web
    ref: web/v1
    commit: 0123456789abcdef0123456789abcdef01234567
info:
  description: a shop
  readinessGates:
  - conditionType: ipam.done
  - conditionType: vlan.done
pipeline:
  # What people want.
  mutators:
  - image: set-labels:v0.2
    configMap:
      tier: front
    selectors:
    - kind: Deployment
  validators:
  - image: kubeconform
    configPath: conform.yaml
status:
  conditions:
  - type: ipam.done
    status: "True"
    reason: Done
`

// alone is a Kptfile that is all there is in its package.
type alone struct {
	*kpt.Kptfile

	resources *kpt.Resources
}

func parseKptfile(text []byte) (alone, error) {
	resources, err := kpt.Open(kpt.Package{kpt.KptfileName: {Content: text, Mode: 0o644}})
	if err != nil {
		return alone{}, err
	}
	k, err := resources.Kptfile("")
	return alone{k, resources}, err
}

func readKptfile(t *testing.T, text string) alone {
	t.Helper()
	k, err := parseKptfile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func bytesOf(t *testing.T, k alone) string {
	t.Helper()
	written, err := k.resources.Package()
	if err != nil {
		t.Fatal(err)
	}
	return string(written[kpt.KptfileName].Content)
}

func TestKptfileIsReadWhole(t *testing.T) {
	t.Parallel()
	facts, err := kpt.ReadFacts([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{"packages.sluice.dev/variant": "apps/web", "packages.sluice.dev/base": "none"}
	want := kpt.Facts{
		Name: "web", Labels: map[string]string{"team": "shop"}, Annotations: annotations,
		Upstream: &kpt.Upstream{Repo: "https://git.example/blueprints.git", Directory: "web", Ref: "web/v1", Strategy: "resource-merge"},
		Lock: &kpt.Lock{
			Repo: "https://git.example/blueprints.git", Directory: "web", Ref: "web/v1", Commit: "0123456789abcdef0123456789abcdef01234567",
		},
		Gates: []string{"ipam.done", "vlan.done"}, Conditions: []kpt.Condition{{Type: "ipam.done", Status: "True", Reason: "Done"}},
		Variant: "apps/web", Base: "none",
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(facts.Waiting(), []string{"vlan.done"}) {
		t.Errorf("waiting for %v", facts.Waiting())
	}
	k := readKptfile(t, whole)
	if diff := cmp.Diff(facts, k.Facts()); diff != "" {
		t.Error(diff)
	}
	pipeline, err := k.Pipeline()
	if err != nil {
		t.Fatal(err)
	}
	functions := kpt.Pipeline{
		Mutators: []kpt.Function{{
			Image: "set-labels:v0.2", ConfigMap: map[string]string{"tier": "front"}, Selectors: []kpt.Selector{{Kind: "Deployment"}},
		}},
		Validators: []kpt.Function{{Image: "kubeconform", ConfigPath: "conform.yaml"}},
	}
	if diff := cmp.Diff(functions, pipeline); diff != "" {
		t.Error(diff)
	}
}

func TestKptfileRefusesWhatKptRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, text, want string }{
		"unknown":    {"A field that kpt does not know.", kptfile + "upstreem:\n  type: git\n", "Kptfile:5: upstreem is not a field of a Kptfile"},
		"deep":       {"A field of a function that kpt does not know.", kptfile + "pipeline:\n  mutators:\n  - img: a\n", "Kptfile:7: pipeline.mutators[0].img is not a field of a Kptfile"},
		"kind":       {"A list where a map belongs.", kptfile + "info: []\n", "Kptfile:5: info is a list, and not a map"},
		"element":    {"A text where a list belongs.", kptfile + "pipeline:\n  mutators: set-labels\n", "Kptfile:6: pipeline.mutators is a single value, and not a list"},
		"twice":      {"Readers take one or the other of two.", kptfile + "info: {}\ninfo: {}\n", "Kptfile:6: info is there twice"},
		"other kind": {"Another object is no Kptfile.", configMap("a"), "Kptfile:1: it has an object that is no Kptfile"},
		"two":        {"Readers take one or the other of two.", kptfile + "---\n" + kptfile, "Kptfile:6: it has a second Kptfile"},
		"nothing":    {"An empty file is no Kptfile.", "# none\n", "Kptfile:1: it is not a Kptfile of kpt.dev"},
		"bomb": {
			"Aliases of aliases are a short text and a long value.",
			kptfile + "pipeline:\n  mutators:\n" + bomb(), "Kptfile:7: it says more by aliases than anybody wants to read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseKptfile([]byte(tc.text))
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// bomb is a list of functions with a list of selectors with a map of labels, each many times the same.
func bomb() string {
	labels := "labels: &l {a: b"
	for i := range 300 {
		labels += fmt.Sprintf(", k%d: v", i)
	}
	return "  - &f {image: x, selectors: [&s {" + labels + "}}" + strings.Repeat(", *s", 300) + "]}\n" +
		strings.Repeat("  - *f\n", 300)
}

func TestFactsOverlookWhatIsUnknown(t *testing.T) {
	t.Parallel()
	facts, err := kpt.ReadFacts([]byte(kptfile + "tomorrow:\n  more: true\n"))
	if err != nil || facts.Name != "web" || len(facts.Waiting()) > 0 {
		t.Errorf("got %+v, %v", facts, err)
	}
	for _, text := range []string{"", configMap("a"), "{", "- 1\n"} {
		if facts, err := kpt.ReadFacts([]byte(text)); err == nil {
			t.Errorf("%q gives %+v", text, facts)
		}
	}
}

func TestKptfileEditsTouchNothingElse(t *testing.T) {
	t.Parallel()
	owner := kpt.Owner{Namespace: "apps", Name: "web.eu"}
	functions := kpt.Pipeline{Mutators: []kpt.Function{
		{Image: "set-namespace", ConfigMap: map[string]string{"namespace": "eu"}},
		{Image: "set-labels", Name: "my.labels", ConfigMap: map[string]string{"a": "1", "b": "true"}},
	}}
	all := func(k *kpt.Kptfile) error {
		k.SetName("web")
		k.SetLabel("team", "shop")
		k.SetAnnotation("packages.sluice.dev/base", "none")
		k.RemoveAnnotation("packages.sluice.dev/config")
		k.SetUpstream(*k.Upstream())
		k.SetLock(*k.Lock())
		k.SetInjectionStatus(nil, nil)
		return k.SetOwnFunctions(owner, kpt.Pipeline{})
	}
	cases := map[string]struct {
		reason string
		from   string
		edit   func(*kpt.Kptfile) error
		want   string
	}{
		"the same": {"Setting what is there changes no byte.", whole, all, whole},
		"values": {
			"Changed values stand where the old ones stood, with their comments.", whole,
			func(k *kpt.Kptfile) error {
				k.SetName("shop")
				k.SetUpstream(kpt.Upstream{Repo: "https://git.example/blueprints.git", Directory: "web", Ref: "web/v2"})
				return nil
			},
			replace(whole, "name: web #", "name: shop #", "    ref: web/v1\n  updateStrategy", "    ref: web/v2\n  updateStrategy"),
		},
		"annotations": {
			"The map goes with its last annotation.", whole,
			func(k *kpt.Kptfile) error {
				k.RemoveAnnotation("packages.sluice.dev/variant")
				k.RemoveAnnotation("packages.sluice.dev/base")
				return nil
			},
			replace(whole, "  annotations:\n    packages.sluice.dev/variant: apps/web\n    packages.sluice.dev/base: none\n", ""),
		},
		"bare": {
			"Parts that are missing are made in their places.", kptfile + "pipeline: {}\n",
			func(k *kpt.Kptfile) error {
				k.SetAnnotation("a", "true")
				k.SetLock(kpt.Lock{Repo: "r", Directory: "/", Ref: "main", Commit: "0123"})
				k.SetUpstream(kpt.Upstream{Repo: "r", Directory: "/", Ref: "main", Strategy: "resource-merge"})
				k.SetInjectionStatus([]string{"config.injection.ConfigMap.a"}, []kpt.Condition{{Type: "config.injection.ConfigMap.a", Status: "False", Reason: "No", Message: "none"}})
				return k.SetOwnFunctions(owner, functions)
			},
			kptfile + `  annotations:
    a: "true"
upstream:
  type: git
  git:
    repo: r
    directory: /
    ref: main
  updateStrategy: resource-merge
upstreamLock:
  type: git
  git:
    repo: r
    directory: /
    ref: main
    commit: "0123"
info:
  readinessGates:
  - conditionType: config.injection.ConfigMap.a
pipeline:
  mutators:
  - image: set-namespace
    configMap:
      namespace: eu
    name: sluice.dev/apps/web.eu/0
  - image: set-labels
    configMap:
      a: "1"
      b: "true"
    name: sluice.dev/apps/web.eu/1/my.labels
status:
  conditions:
  - type: config.injection.ConfigMap.a
    status: "False"
    reason: "No"
    message: none
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := readKptfile(t, tc.from)
			if err := tc.edit(k.Kptfile); err != nil {
				t.Fatal(err)
			}
			got := bytesOf(t, k)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			again := readKptfile(t, got)
			if err := tc.edit(again.Kptfile); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, bytesOf(t, again)); diff != "" {
				t.Errorf("the second time changes more: %s", diff)
			}
		})
	}
}

func replace(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

func TestOwnFunctionsNeverAccumulate(t *testing.T) {
	t.Parallel()
	owners := []kpt.Owner{{Namespace: "a", Name: "v.1"}, {Namespace: "a", Name: "v"}, {Namespace: "a.b", Name: "v.0"}}
	k := readKptfile(t, whole)
	first := ""
	for round := range 3 {
		for i, owner := range owners {
			own := kpt.Pipeline{
				Mutators:   []kpt.Function{{Image: "set-labels", Name: "x.0"}, {Image: "set-labels", Name: "a/b/0"}, {Image: "set-annotations"}},
				Validators: []kpt.Function{{Image: fmt.Sprint("check-", i), Exclude: []kpt.Selector{{Name: "n"}}}},
			}
			if err := k.SetOwnFunctions(owner, own); err != nil {
				t.Fatal(err)
			}
		}
		pipeline, err := k.Pipeline()
		if err != nil {
			t.Fatal(err)
		}
		if len(pipeline.Mutators) != 10 || len(pipeline.Validators) != 4 {
			t.Fatalf("round %d: %d mutators and %d validators", round, len(pipeline.Mutators), len(pipeline.Validators))
		}
		if last := pipeline.Mutators[9]; last.Image != "set-labels:v0.2" {
			t.Errorf("people's function is %+v", last)
		}
		first = bytesOf(t, k)
	}
	for _, owner := range owners {
		if err := k.SetOwnFunctions(owner, kpt.Pipeline{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := bytesOf(t, k); got != whole || first == whole {
		t.Errorf("without own functions: %s", cmp.Diff(whole, got))
	}
}

func TestOwnersAreToldApart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		owner kpt.Owner
		ok    bool
	}{
		"sluice.dev/ns/name/0":           {kpt.Owner{Namespace: "ns", Name: "name"}, true},
		"sluice.dev/ns/na.me/12/a/b.0":   {kpt.Owner{Namespace: "ns", Name: "na.me"}, true},
		"sluice.dev/ns/name":             {},
		"sluice.dev/ns/name/x":           {},
		"sluice.dev//name/0":             {},
		"sluice.dev/ns/name/-1":          {},
		"xsluice.dev/ns/name/0":          {},
		"PackageVariant.name.fn.0":       {},
		"sluice.dev/ns/name/99999999999": {},
	}
	for name, tc := range cases {
		owner, ok := kpt.FunctionOwner(name)
		if owner != tc.owner || ok != tc.ok {
			t.Errorf("%s: got %v, %v", name, owner, ok)
		}
	}
}

func TestDigestTellsPackagesApart(t *testing.T) {
	t.Parallel()
	base := kpt.Package{"a": {Content: []byte("bc"), Mode: 0o644}, "d": {Content: []byte("e"), Mode: 0o644}}
	seen := map[string]string{base.Digest(): "the base"}
	for name, change := range map[string]func(kpt.Package){
		"content":  func(p kpt.Package) { p["a"] = kpt.File{Content: []byte("b"), Mode: 0o644} },
		"boundary": func(p kpt.Package) { delete(p, "a"); p["ab"] = kpt.File{Content: []byte("c"), Mode: 0o644} },
		"mode":     func(p kpt.Package) { p["a"] = kpt.File{Content: []byte("bc"), Mode: 0o755} },
		"gone":     func(p kpt.Package) { delete(p, "d") },
	} {
		other := maps.Clone(base)
		change(other)
		if same, found := seen[other.Digest()]; found || other.Equal(base) {
			t.Errorf("%s is as %s", name, same)
		}
		seen[other.Digest()] = name
	}
	if !maps.Clone(base).Equal(base) || maps.Clone(base).Digest() != base.Digest() {
		t.Error("a copy is another package")
	}
}
