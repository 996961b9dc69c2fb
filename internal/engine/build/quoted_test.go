package build_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
)

const quoting = `apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
spec:
  plain: ${N}
  double: "${N}"
  single: '${N}'
  literal: |-
    ${N}
  tagged: !!str ${N}
  inside: "1${N}"
  list: [ "${N}", "${N}" ]
  text: "${S}"
  none: "${EMPTY}"
  default: "${OTHER:=7}"
`

// quoted is the spec of what becomes of quoting, with what patches add to it.
func quoted(added map[string]any) map[string]any {
	spec := map[string]any{
		"plain": int64(3), "double": "3", "single": "3", "literal": "3", "tagged": "3", "inside": "13",
		"list": []any{"3", "3"}, "text": "text", "none": "", "default": "7",
	}
	maps.Copy(spec, added)
	return spec
}

// TestQuotedStaysTextThroughJSONPatches: a JSON patch writes its object anew, and takes the quotes off all of it.
func TestQuotedStaysTextThroughJSONPatches(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"N": "3", "S": "text", "EMPTY": ""}
	const (
		ops  = `[{"op": "add", "path": "/spec/added", "value": "${N}"}, {"op": "add", "path": "/spec/counted", "value": 4}]`
		yaml = "- {op: add, path: /spec/added, value: '${N}'}\n- {op: add, path: /spec/counted, value: 4}\n"
	)
	both := quoted(map[string]any{"added": "3", "counted": int64(4)})
	wish := []modulesv1.Patch{{Patch: ops, Target: &modulesv1.PatchTarget{Kind: "Thing"}}}
	tests := map[string]struct {
		reason  string
		files   map[string]string
		patches []modulesv1.Patch
		want    map[string]any
	}{
		"plain files":       {"the installation's patch", map[string]string{"a.yaml": quoting}, wish, both},
		"plain files, YAML": {"however it is written", map[string]string{"a.yaml": quoting}, []modulesv1.Patch{{Patch: yaml, Target: &modulesv1.PatchTarget{Kind: "Thing"}}}, both},
		"plain values": {
			"what a patch does not quote is no text because of it",
			map[string]string{"a.yaml": quoting},
			[]modulesv1.Patch{{Patch: "- {op: add, path: /spec/added, value: \"${S}\"}\n- op: add\n  path: /spec/number\n  value: ${N}\n", Target: &modulesv1.PatchTarget{Kind: "Thing"}}},
			quoted(map[string]any{"added": "text", "number": int64(3)}),
		},
		"own kustomization": {"laid over the artifact's", map[string]string{"a.yaml": quoting, "kustomization.yaml": kustomizationA}, wish, both},
		"base": {"and what it builds on", map[string]string{
			"base/a.yaml": quoting, "base/kustomization.yaml": kustomizationA, "kustomization.yaml": "resources: [base]\n",
		}, wish, both},
		"artifact's patch": {"written into its kustomization", map[string]string{
			"a.yaml": quoting, "kustomization.yaml": kustomizationA + "patches:\n- target: {kind: Thing}\n  patch: |\n    " + ops + "\n",
		}, nil, both},
		"artifact's file": {"or in a file of its own", map[string]string{
			"a.yaml": quoting, "ops.yaml": ops, "kustomization.yaml": kustomizationA + "patches: [{target: {kind: Thing}, path: ops.yaml}]\n",
		}, nil, both},
		"older spelling": {"as it was called before", map[string]string{
			"a.yaml": quoting, "ops.yaml": ops,
			"kustomization.yaml": kustomizationA + "patchesJson6902: [{target: {version: v1, group: example.com, kind: Thing, name: a}, path: ops.yaml}]\n",
		}, nil, both},
		"component": {"of a component", map[string]string{
			"a.yaml": quoting, "kustomization.yaml": kustomizationA + "components: [part]\n", "part/ops.yaml": ops,
			"part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{target: {kind: Thing}, path: ops.yaml}]\n",
		}, nil, both},
		"merged first": {"what a merge patch quotes is text as well", map[string]string{
			"a.yaml": quoting, "merge.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {merged: '${N}', counts: '${N}'}\n",
			"kustomization.yaml": kustomizationA + "patches: [{path: merge.yaml}]\n",
		}, wish, quoted(map[string]any{"added": "3", "counted": int64(4), "merged": "3", "counts": "3"})},
	}
	builder := build.New(build.Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := objectsOf(builder.Build(t.Context(), build.Request{Tree: tree(test.files), Patches: test.patches, Substitute: vars}))
			check(t, err)
			got, _, _ := unstructured.NestedMap(objects[0].Object, "spec")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// TestQuotesDoNotShow: what keeps quoted variables text is seen by nobody: not by names that kustomize compares, not by
// objects that keep their variables, and not by the data that generated names are made of.
func TestQuotesDoNotShow(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"kustomization.yaml": kustomizationA + "configMapGenerator: [{name: made, files: [data.yaml]}]\n" +
			"patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"n\": \"${N}\"}}]'}]\n",
		"data.yaml": "port: \"${N}\"\n",
		"a.yaml": configMap("${S}", "  labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}\ndata: {a: '${N}'}\n") +
			"---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {volumes: [{name: c, configMap: {name: \"${S}\"}}]}\n",
	}
	for name, vars := range map[string]map[string]string{"text": {"N": "3", "S": "text"}, "number": {"N": "3", "S": "4"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := objectsOf(build.New(build.Options{}).Build(t.Context(), build.Request{Tree: tree(files), Substitute: vars}))
			check(t, err)
			want := `{"apiVersion":"v1","data":{"a":"${N}"},"kind":"ConfigMap","metadata":{"annotations":{"n":"${N}"},"labels":{"kustomize.toolkit.fluxcd.io/substitute":"disabled"},"name":"${S}"}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"volumes":[{"configMap":{"name":"` + vars["S"] + `"},"name":"c"}]}}
{"apiVersion":"v1","data":{"data.yaml":"port: \"3\"\n"},"kind":"ConfigMap","metadata":{"annotations":{"n":"3"},"name":"made-bm56cbhhcc"}}
`
			if diff := cmp.Diff(want, show(t, objects)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
