package kpt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

const packageContext = `apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: web
`

func TestContextSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		files  map[string]string
		data   map[string]string
		gone   []string
		want   map[string]string
	}{
		"none": {"Nothing to say makes no context.", map[string]string{}, nil, []string{"x"}, map[string]string{}},
		"new":  {"It is made.", map[string]string{}, map[string]string{"name": "web"}, nil, map[string]string{"package-context.yaml": packageContext}},
		"there": {
			"Upstream's defaults stay.",
			map[string]string{"package-context.yaml": packageContext + "  region: none # set me\n  zone: a\n  tier: x\n", "sub/package-context.yaml": packageContext},
			map[string]string{"name": "web", "region": "eu", "size": "3"},
			[]string{"tier", "not-there"},
			map[string]string{"package-context.yaml": packageContext + "  region: eu # set me\n  zone: a\n  size: \"3\"\n", "sub/package-context.yaml": packageContext},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resources := open(t, pkg(tc.files))
			resources.SetContext(tc.data, tc.gone)
			written, err := resources.Package()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, contents(written)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			for key, value := range tc.data {
				if got := open(t, written).Context()[key]; got != value {
					t.Errorf("%s is %q", key, got)
				}
			}
		})
	}
}

func TestNamespaceHasAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	resources := open(t, pkg(map[string]string{
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n",
		"local.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: b\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n",
	}))
	if diff := cmp.Diff([]string{"a"}, resources.Namespaces()); diff != "" {
		t.Error(diff)
	}
	resources.AddNamespace("eu")
	written, err := resources.Package()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("apiVersion: v1\nkind: Namespace\nmetadata: # kpt-merge: /namespace\n  name: eu\n", string(written["namespace-2.yaml"].Content)); diff != "" {
		t.Error(diff)
	}
}

func TestOriginsAreNotedWhereNamesChange(t *testing.T) {
	t.Parallel()
	before := open(t, pkg(map[string]string{
		"Kptfile": kptfile,
		"a.yaml":  configMap("a") + "---\n" + configMap("b") + "---\n" + "apiVersion: v1\nkind: Namespace\nmetadata: {name: old} # of the package\n",
		"b.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: # kpt-merge: x/y\n  name: s\n---\n" + configMap("c"),
	}))
	p, err := before.Package()
	if err != nil {
		t.Fatal(err)
	}
	after := open(t, p)
	for _, item := range after.Items {
		switch {
		case item.Kind() == "Namespace" || item.IsKptfile():
			if err := item.Node.SetName("new"); err != nil {
				t.Fatal(err)
			}
		case item.ID().Name != "c":
			if err := item.Node.PipeE(yaml.LookupCreate(yaml.MappingNode, "metadata"), yaml.SetField("namespace", yaml.NewStringRNode("new"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	after.Remove(func(r *kpt.Resource) bool { return r.ID().Name == "a" })
	after.KeepOrigins(before)
	written, err := after.Package()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: new\n",
		"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: # kpt-merge: /b\n  name: b\n  namespace: new\n---\n" +
			"apiVersion: v1\nkind: Namespace\n# of the package\nmetadata: {name: new} # kpt-merge: /old\n",
		"b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: # kpt-merge: x/y\n  name: s\n  namespace: new\n---\n" + configMap("c"),
	}
	if diff := cmp.Diff(want, contents(written)); diff != "" {
		t.Error(diff)
	}
	var origins []string
	for _, item := range open(t, written).Items {
		origins = append(origins, item.Origin().String())
	}
	if diff := cmp.Diff([]string{"Kptfile.kpt.dev new", "ConfigMap b", "Namespace old", "Secret x/y", "ConfigMap c"}, origins); diff != "" {
		t.Error(diff)
	}
}
