package build_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func tree(files map[string]string) fs.FS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

// configMap is an object with some data.
func configMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n" + data
}

// show is the objects as JSON, one a line.
func show(tb testing.TB, objects []*unstructured.Unstructured) string {
	tb.Helper()
	var out strings.Builder
	for _, object := range objects {
		raw, err := json.Marshal(object.Object)
		check(tb, err)
		out.Write(raw)
		out.WriteString("\n")
	}
	return out.String()
}

// objectsOf are the objects alone of what was built.
func objectsOf(built build.Built, err error) ([]*unstructured.Unstructured, error) {
	return built.Objects, err
}

func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetKind()+"/"+object.GetName())
	}
	return all
}

const kustomizationA = "resources: [a.yaml]\n"

func TestWhatIsBuilt(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	tests := map[string]struct {
		reason string
		files  map[string]string
		path   string
		want   []string
	}{
		"plain files": {
			"all manifests beneath the path, in lexical order, hidden ones like others",
			map[string]string{
				"z.yaml": configMap("z", ""), "a/b.yml": configMap("b", ""), "a/.c.yaml": configMap("c", ""), "a/d.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"d"}}`,
				"README.md": "not: YAML: at all", "a/script.sh": "#!",
			},
			"",
			[]string{"ConfigMap/c", "ConfigMap/b", "Secret/d", "ConfigMap/z"},
		},
		"several documents": {
			"documents in their order, empty ones skipped",
			map[string]string{"a.yaml": "%YAML 1.1\n---\n# nothing\n---\n" + configMap("one", "") + "---\n---\nnull\n--- {}\n---\r\n" + configMap("two", "data:\n  a: |\n   --- b\n") + "...\n---\n" + configMap("three", "")},
			"",
			[]string{"ConfigMap/one", "ConfigMap/two", "ConfigMap/three"},
		},
		"lists": {
			"lists of any kind are taken apart, and lists in them",
			map[string]string{"a.yaml": `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}
---
{apiVersion: v1, kind: List, items: []}
---
{apiVersion: v1, kind: AllowList, metadata: {name: three}}
`},
			"",
			[]string{"ConfigMap/one", "ConfigMap/two", "AllowList/three"},
		},
		"local configuration": {
			"kustomize leaves it out, so it is left out without kustomize too",
			map[string]string{"a.yaml": configMap("a", "") + "---\n" + configMap("b", "  annotations: {config.kubernetes.io/local-config: 'true'}\n")},
			"/",
			[]string{"ConfigMap/a"},
		},
		"path": {
			"only what is at the path", map[string]string{"a/x.yaml": configMap("x", ""), "b/y.yaml": configMap("y", "")}, "./b/", []string{"ConfigMap/y"},
		},
		"kustomization": {
			"only what it says, from wherever in the artifact",
			map[string]string{
				"apps/kustomization.yaml": "resources: [../base, own.yaml]\nnamePrefix: p-\nconfigMapGenerator: [{name: gen, files: [../files/f.txt], options: {disableNameSuffixHash: true}}]\n",
				"apps/own.yaml":           configMap("own", ""), "apps/other.yaml": "no: object",
				"base/Kustomization": "resources: [x.yaml]\n", "base/x.yaml": configMap("x", ""), "files/f.txt": "content",
			},
			"apps",
			[]string{"ConfigMap/p-x", "ConfigMap/p-own", "ConfigMap/p-gen"},
		},
		"kustomizations beneath": {
			"a folder with one stands for what that builds",
			map[string]string{
				"a.yaml": configMap("a", ""), "b/kustomization.yaml": "namePrefix: p-\nresources: [b.yaml]\n", "b/b.yaml": configMap("b", ""), "b/c.yaml": "no: object", "d.yaml": configMap("d", ""), "empty.yaml": "# nothing\n",
			},
			"",
			[]string{"ConfigMap/a", "ConfigMap/p-b", "ConfigMap/d"},
		},
		"component": {
			"components are kustomizations too",
			map[string]string{
				"kustomization.yaml": "resources: [a.yaml]\ncomponents: [c]\n", "a.yaml": configMap("a", ""),
				"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n",
			},
			"",
			[]string{"ConfigMap/a-c"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(test.files), Path: test.path}))
			check(t, err)
			if diff := cmp.Diff(test.want, names(objects)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: site
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: web
        image: nginx:1.0
`

func TestWishesOfTheInstallation(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	plain := map[string]string{"a/site.yaml": deployment, "b.yaml": configMap("b", "")}
	with := func(images string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [site.yaml, b.yaml]\nimages: [" + images + "]\n", "site.yaml": deployment, "b.yaml": configMap("b", "")}
	}
	own := with("{name: nginx, newName: mirror/nginx, newTag: '2'}")
	pinned := with("{name: nginx, digest: 'sha256:" + strings.Repeat("2", 64) + "'}")
	suffixed := with("{name: nginx, tagSuffix: -alpine}")
	based := map[string]string{
		"kustomization.yaml": "resources: [base, b.yaml]\n", "base/kustomization.yaml": "resources: [site.yaml]\nimages: [{name: nginx, newTag: '3'}]\n",
		"base/site.yaml": deployment, "b.yaml": configMap("b", ""),
	}
	site := func(fields string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"site"` + fields + "}\n"
	}
	b := func(fields string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + fields + "}}\n"
	}
	rest := func(replicas int, image string) string {
		return fmt.Sprintf(`},"spec":{"replicas":%d,"template":{"spec":{"containers":[{"image":"%s","name":"web"}]}}}`, replicas, image)
	}
	tests := map[string]struct {
		reason string
		files  map[string]string
		change func(*build.Request)
		want   string
	}{
		"nothing": {"what is there", plain, func(*build.Request) {}, site(rest(1, "nginx:1.0")) + b(`"name":"b"`)},
		"labels": {"on objects, over theirs, not on templates", plain, func(r *build.Request) {
			r.Labels, r.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "2"}
		}, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"a":"2"},"labels":{"l":"1"},"name":"site"` + rest(1, "nginx:1.0") + "}\n" + b(`"annotations":{"a":"2"},"labels":{"l":"1"},"name":"b"`)},
		"namespace": {"by what kustomize knows", plain, func(r *build.Request) { r.TargetNamespace = "apps" }, site(`,"namespace":"apps"`+rest(1, "nginx:1.0")) + b(`"name":"b","namespace":"apps"`)},
		"image":     {"wherever kustomize finds images", plain, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewTag: "9"}} }, site(rest(1, "nginx:9")) + b(`"name":"b"`)},
		"image by digest": {"in another registry", plain, func(r *build.Request) {
			r.Images = []modulesv1.Image{{Name: "nginx", NewName: "mirror/nginx", Digest: "sha256:" + strings.Repeat("1", 64)}}
		}, site(rest(1, "mirror/nginx@sha256:"+strings.Repeat("1", 64))) + b(`"name":"b"`)},
		"tag over the artifact's":  {"the name that it gives stays", own, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewTag: "9"}} }, site(rest(1, "mirror/nginx:9")) + b(`"name":"b"`)},
		"name over the artifact's": {"the tag that it gives stays", own, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewName: "mine/nginx"}} }, site(rest(1, "mine/nginx:2")) + b(`"name":"b"`)},
		"digest over the artifact's": {"it takes the place of a tag", own, func(r *build.Request) {
			r.Images = []modulesv1.Image{{Name: "nginx", Digest: "sha256:" + strings.Repeat("1", 64)}}
		}, site(rest(1, "mirror/nginx@sha256:"+strings.Repeat("1", 64))) + b(`"name":"b"`)},
		"name over a digest":               {"which stays", pinned, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewName: "mine/nginx"}} }, site(rest(1, "mine/nginx@sha256:"+strings.Repeat("2", 64))) + b(`"name":"b"`)},
		"name over a suffix":               {"which stays too", suffixed, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewName: "mine/nginx"}} }, site(rest(1, "mine/nginx:1.0-alpine")) + b(`"name":"b"`)},
		"tag over a digest":                {"it takes the place of that", pinned, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewTag: "9"}} }, site(rest(1, "nginx:9")) + b(`"name":"b"`)},
		"the name that the artifact gives": {"is one to go by, too", own, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "mirror/nginx", NewTag: "9"}} }, site(rest(1, "mirror/nginx:9")) + b(`"name":"b"`)},
		"name over a base's tag":           {"however deep", based, func(r *build.Request) { r.Images = []modulesv1.Image{{Name: "nginx", NewName: "mine/nginx"}} }, site(rest(1, "mine/nginx:3")) + b(`"name":"b"`)},
		"the artifact's image":             {"unless nothing is wished", own, func(*build.Request) {}, site(rest(1, "mirror/nginx:2")) + b(`"name":"b"`)},
		"merge patch": {"to the object that it names", plain, func(r *build.Request) {
			r.Patches = []modulesv1.Patch{{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: site}\nspec: {replicas: 5}\n"}}
		}, site(rest(5, "nginx:1.0")) + b(`"name":"b"`)},
		"json patch": {"to those that the target selects, also by the artifact's own kustomization", own, func(r *build.Request) {
			r.Patches = []modulesv1.Patch{{Patch: "- {op: replace, path: /spec/replicas, value: 7}", Target: &modulesv1.PatchTarget{Group: "apps", Kind: "Deploy.*"}}}
		}, site(rest(7, "mirror/nginx:2")) + b(`"name":"b"`)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := build.Request{Tree: tree(test.files)}
			test.change(&r)
			objects, err := objectsOf(builder.Build(t.Context(), r))
			check(t, err)
			if diff := cmp.Diff(test.want, show(t, objects)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// TestPatchTargets: each field of a target selects by itself.
func TestPatchTargets(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	files := map[string]string{
		"one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: here, labels: {app: web}, annotations: {note: first}}\ndata: {key: before}\n",
		"two.yaml": "apiVersion: example.com/v2\nkind: Thing\nmetadata: {name: two, namespace: there, labels: {app: db}, annotations: {note: second}}\ndata: {key: before}\n",
	}
	for name, target := range map[string]modulesv1.PatchTarget{
		"group": {Group: "example.com"}, "version": {Version: "v2"}, "kind": {Kind: "Thing"}, "name": {Name: "t.*"},
		"namespace": {Namespace: "there"}, "labels": {LabelSelector: "app=db,app!=web"}, "annotations": {AnnotationSelector: "note=second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(files), Patches: []modulesv1.Patch{
				{Patch: "- {op: replace, path: /data/key, value: after}", Target: &target},
			}}))
			check(t, err)
			got := map[string]any{}
			for _, o := range objects {
				data, _ := o.Object["data"].(map[string]any)
				got[o.GetName()] = data["key"]
			}
			if diff := cmp.Diff(map[string]any{"one": "before", "two": "after"}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSubstitution(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	vars := map[string]string{
		"N": "3", "T": "true", "S": "text", "EMPTY": "", "EVIL": "a\nb: c", "MAP": "{a: b}", "HASH": "a # b", "REF": "${S}", "ANCHOR": "*a", "NULL": "~", "LINE": "1\n2",
		"DOC": "x\n---\nkind: Other", "BIG": "12345678901234567890", "YES": "yes", "FLOAT": "1.5", "QUOTE": `"`,
	}
	tests := map[string]struct {
		reason, data string
		want         any
	}{
		"plain number":       {"a plain scalar is read as any text at its place", "${N}", int64(3)},
		"quoted number":      {"a quoted one is text", `"${N}"`, "3"},
		"single quotes":      {"whatever the quotes", `'${N}'`, "3"},
		"literal":            {"or the style", "|-\n  ${N}", "3"},
		"explicit tag":       {"or if it is said to be text", "!!str ${N}", "3"},
		"plain boolean":      {"", "${T}", true},
		"plain text":         {"", "${S}", "text"},
		"float":              {"", "${FLOAT}", 1.5},
		"yes":                {"as kustomize reads it", "${YES}", "yes"},
		"nothing":            {"as YAML reads it", "${EMPTY}", nil},
		"quoted nothing":     {"", `"${EMPTY}"`, ""},
		"null":               {"", "${NULL}", nil},
		"inside":             {"", "a-${S}-${N}", "a-text-3"},
		"lines stay inside":  {"no value makes a key", "${EVIL}", "a\nb: c"},
		"digits and lines":   {"", "${LINE}", "1\n2"},
		"no mapping":         {"nor a mapping", "${MAP}", "{a: b}"},
		"no comment":         {"nor a comment", "${HASH}", "a # b"},
		"no alias":           {"nor an alias", "${ANCHOR}", "*a"},
		"no document":        {"nor a document", "${DOC}", "x\n---\nkind: Other"},
		"no quote":           {"nor a quote", "${QUOTE}", `"`},
		"values are values":  {"what looks like a variable in a value stays", "${REF}", "${S}"},
		"default":            {"", "${MISSING:=7}", int64(7)},
		"other default":      {"", "${MISSING:-d}", "d"},
		"default in default": {"", "${MISSING:-${S}}", "text"},
		"escaped":            {"two dollars are one", "$${S}", "${S}"},
		"shell":              {"other dollars stay", "$HOME $(id)", "$HOME $(id)"},
		"substring":          {"what takes long is done by a worker", "${S:1:2}", "ex"},
		"replace":            {"", "${S/e/E}", "tExt"},
		"length":             {"", "${#S}", int64(4)},
		"upper":              {"", "${S^^}", "TEXT"},
	}
	assert := func(t *testing.T, reason string, want any, object *unstructured.Unstructured) {
		t.Helper()
		if diff := cmp.Diff(want, object.Object["value"]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", reason, diff)
		}
		if len(object.Object) != 4 {
			t.Errorf("there is more or less than was written: %v", object.Object)
		}
	}
	var all strings.Builder
	order := slices.Sorted(maps.Keys(tests))
	for i, name := range order {
		test := tests[name]
		manifest := configMap(fmt.Sprint("a", i), "value: "+test.data+"\n")
		all.WriteString("---\n" + manifest)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(map[string]string{"a.yaml": manifest}), Substitute: vars}))
			check(t, err)
			assert(t, test.reason, test.want, objects[0])
		})
	}
	t.Run("kustomized", func(t *testing.T) {
		t.Parallel()
		files := map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": all.String()}
		objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(files), Substitute: vars}))
		check(t, err)
		for i, name := range order {
			assert(t, name+" by kustomize: "+tests[name].reason, tests[name].want, objects[i])
		}
	})
}

func TestSubstitutionOfKeysAndExemptions(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	files := map[string]string{"a.yaml": configMap("a-${S}", "data:\n  ${S}.conf: '1'\n") +
		"---\n" + configMap("b", "  labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}\ndata: {a: '${S}'}\n") +
		"---\n" + configMap("c", "  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\ndata: {a: '${OTHER}'}\n")}
	objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(files), Substitute: map[string]string{"S": "s"}}))
	check(t, err)
	want := `{"apiVersion":"v1","data":{"s.conf":"1"},"kind":"ConfigMap","metadata":{"name":"a-s"}}
{"apiVersion":"v1","data":{"a":"${S}"},"kind":"ConfigMap","metadata":{"labels":{"kustomize.toolkit.fluxcd.io/substitute":"disabled"},"name":"b"}}
{"apiVersion":"v1","data":{"a":"${OTHER}"},"kind":"ConfigMap","metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/substitute":"disabled"},"name":"c"}}
`
	if diff := cmp.Diff(want, show(t, objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	objects, err = objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(map[string]string{"a.yaml": configMap("a", "data: {x: '${S} ${'}\n")})}))
	check(t, err)
	if got, _, _ := unstructured.NestedString(objects[0].Object, "data", "x"); got != "${S} ${" {
		t.Errorf("without variables nothing is substituted: %q", got)
	}
}

// TestUnusedVariablesAreTold: a variable is used when an object that is made asks for it, whatever came of that.
func TestUnusedVariablesAreTold(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"A": "1", "B": "2", "C": "3", "PATCHED": "4", "OFF": "5", "typo": "6"}
	manifest := configMap("a", "data: {a: '${A}', b: '${A:-${B}}', c: '${C:0:1}'}\n") +
		"---\n" + configMap("off", "  labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}\ndata: {off: '${OFF}'}\n")
	patch := []modulesv1.Patch{{Patch: "- {op: add, path: /data/p, value: '${PATCHED}'}", Target: &modulesv1.PatchTarget{Name: "a"}}}
	tests := map[string]struct {
		reason string
		r      build.Request
		want   []string
	}{
		"plain":      {"also where a worker goes on with it", build.Request{Tree: tree(map[string]string{"a.yaml": manifest}), Substitute: vars}, []string{"OFF", "PATCHED", "typo"}},
		"kustomized": {"", build.Request{Tree: tree(map[string]string{"a.yaml": manifest, "kustomization.yaml": kustomizationA}), Substitute: vars}, []string{"OFF", "PATCHED", "typo"}},
		"patched":    {"a patch brings variables too", build.Request{Tree: tree(map[string]string{"a.yaml": manifest}), Substitute: vars, Patches: patch}, []string{"OFF", "typo"}},
		"all":        {"", build.Request{Tree: tree(map[string]string{"a.yaml": manifest}), Substitute: map[string]string{"A": "1", "B": "2", "C": "3"}}, nil},
		"none":       {"", build.Request{Tree: tree(map[string]string{"a.yaml": manifest})}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, err := build.New(build.Options{}).Build(t.Context(), test.r)
			check(t, err)
			if diff := cmp.Diff(test.want, built.Unused, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.yaml": configMap("a", `
base: &base {x: 1, y: [1, 2]}
merged: {<<: *base, x: 2}
several: {<<: [{z: 1}, *base], y: 0}
alias: *base
time: 2024-01-01
octal: 0644
hex: 0x10
exponent: 1e3
null: ~
yes: no
1: one
text: |
  a
  b
quoted: "1"
binary: !!str 0x10
`)}
	objects, err := objectsOf(build.New(build.Options{}).Build(t.Context(), build.Request{Tree: tree(files)}))
	check(t, err)
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		"base":    map[string]any{"x": int64(1), "y": []any{int64(1), int64(2)}},
		"merged":  map[string]any{"x": int64(2), "y": []any{int64(1), int64(2)}},
		"several": map[string]any{"x": int64(1), "y": int64(0), "z": int64(1)},
		"alias":   map[string]any{"x": int64(1), "y": []any{int64(1), int64(2)}},
		"time":    "2024-01-01", "octal": int64(0o644), "hex": int64(16), "exponent": 1000.0, "null": nil, "yes": "no", "1": "one",
		"text": "a\nb\n", "quoted": "1", "binary": "0x10",
	}
	if diff := cmp.Diff(want, objects[0].Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNormalise(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.yaml": `
apiVersion: v1
kind: Secret
metadata:
  name: a
  uid: u
  resourceVersion: "1"
  generation: 1
  creationTimestamp: null
  deletionTimestamp: 2026-01-01T00:00:00Z
  deletionGracePeriodSeconds: 0
  managedFields: []
  labels: null
data: {a: YQ==, b: Yg==}
stringData: {b: new, c: ""}
`}
	objects, err := objectsOf(build.New(build.Options{}).Build(t.Context(), build.Request{Tree: tree(files)}))
	check(t, err)
	want := `{"apiVersion":"v1","data":{"a":"YQ==","b":"bmV3","c":""},"kind":"Secret","metadata":{"name":"a"}}` + "\n"
	if diff := cmp.Diff(want, show(t, objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	before := build.Hash(objects[0])
	check(t, build.Normalise(objects[0]))
	if build.Hash(objects[0]) != before {
		t.Error("once is not enough")
	}
}

func TestSameRequestSameObjects(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	requests := []build.Request{
		{Tree: many(50, false), Labels: map[string]string{"a": "1", "b": "2"}, Substitute: map[string]string{"A": "1", "B": "2"}},
		{Tree: many(50, true), TargetNamespace: "apps"},
	}
	for _, r := range requests {
		first, err := objectsOf(builder.Build(t.Context(), r))
		check(t, err)
		for range 3 {
			again, err := objectsOf(builder.Build(t.Context(), r))
			check(t, err)
			if diff := cmp.Diff(show(t, first), show(t, again)); diff != "" {
				t.Fatal(diff)
			}
			again[0], again[1] = again[1], again[0]
			if build.RenderDigest(first) != build.RenderDigest(again) {
				t.Error("the order makes another digest")
			}
			again[0].SetName("other")
			if build.RenderDigest(first) == build.RenderDigest(again) {
				t.Error("another name makes no other digest")
			}
		}
	}
}

func TestPlainEqualsKustomized(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	plain, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: many(30, false)}))
	check(t, err)
	kustomized, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: many(30, true)}))
	check(t, err)
	if diff := cmp.Diff(show(t, plain), show(t, kustomized)); diff != "" {
		t.Errorf("kustomize reads another thing: %s", diff)
	}
}

// many are so many deployments and as many config maps.
func many(count int, kustomized bool) fs.FS {
	files := map[string]string{}
	var list strings.Builder
	for i := range count / 2 {
		name := fmt.Sprintf("app-%04d", i)
		files[name+".yaml"] = strings.ReplaceAll(deployment, "site", name) + "---\n" + configMap(name, "data:\n  a: \"1\"\n  b: |\n    text\n    more text: with a colon\n")
		fmt.Fprintf(&list, "- %s.yaml\n", name)
	}
	if kustomized {
		files["kustomization.yaml"] = "resources:\n" + list.String()
	}
	return tree(files)
}

func TestEmptyIsSaid(t *testing.T) {
	t.Parallel()
	builder := build.New(build.Options{})
	for name, r := range map[string]build.Request{
		"no file":          {Tree: tree(map[string]string{"README.md": ""})},
		"no document":      {Tree: tree(map[string]string{"a.yaml": "# nothing\n---\n"})},
		"empty list":       {Tree: tree(map[string]string{"a.yaml": "{apiVersion: v1, kind: List, items: []}"})},
		"nothing to patch": {Tree: tree(map[string]string{"a.yaml": "# nothing"}), TargetNamespace: "a"},
		"all local":        {Tree: tree(map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": configMap("a", "  annotations: {config.kubernetes.io/local-config: 'true'}\n")})},
	} {
		if _, err := builder.Build(t.Context(), r); !errors.Is(err, build.ErrEmpty) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/real.yaml", []byte(configMap("a", "")), 0o600))
	check(t, os.Symlink("/etc/passwd", dir+"/link.yaml"))
	if _, err := build.New(build.Options{}).Build(t.Context(), build.Request{Tree: os.DirFS(dir)}); !errors.Is(err, build.ErrDocument) {
		t.Errorf("got %v", err)
	}
}

// TestErrorsKeepValues: what a variable stands for may come from a Secret, and an error ends up in conditions.
func TestErrorsKeepValues(t *testing.T) {
	t.Parallel()
	for value, data := range map[string]string{
		"90909090909090909090": "data: {a: ${S}}\n",
		"9e909":                "data: {a: ${S}}\n",
		"hunter2":              "data: {a: 1, '${S}': 2, hunter2: 3}\n",
	} {
		_, err := build.New(build.Options{}).Build(t.Context(), build.Request{
			Tree: tree(map[string]string{"a.yaml": configMap("a", data)}), Substitute: map[string]string{"S": value},
		})
		if !errors.Is(err, build.ErrDocument) || strings.Contains(err.Error(), value) != strings.Contains(data, value) {
			t.Errorf("%s with %s: %v", data, value, err)
		}
	}
}

// TestErrorsQuoteNoSecret: whoever may read a condition need not be one who may read the artifact.
func TestErrorsQuoteNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "909090909090909090901234"
	for name, data := range map[string]string{
		"number":   "stringData: {a: " + secret + "}\n",
		"float":    "stringData: {a: !!float 1.e" + secret + "}\n",
		"boolean":  "stringData: {a: !!bool " + secret + "}\n",
		"variable": "stringData: {a: 'x" + secret + "${S'}\n",
	} {
		for _, kind := range []string{"Secret", "ConfigMap"} {
			content := strings.Replace(configMap("a", data), "kind: ConfigMap", "kind: "+kind, 1)
			_, err := build.New(build.Options{}).Build(t.Context(), build.Request{
				Tree: tree(map[string]string{"a.yaml": content}), Substitute: map[string]string{"S": "s"},
			})
			if err == nil || !strings.Contains(err.Error(), "line ") || strings.Contains(err.Error(), secret) != (kind == "ConfigMap") {
				t.Errorf("%s of a %s: %v", name, kind, err)
			}
		}
	}
}
