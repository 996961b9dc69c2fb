package function

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kustomize "sigs.k8s.io/kustomize/api/filters/replacement"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestReplacementsAreKustomizes compares with kustomize where it does what it says.
func TestReplacementsAreKustomizes(t *testing.T) {
	t.Parallel()
	const objects = `apiVersion: v1
kind: ConfigMap
metadata:
  name: values
data:
  host: a.example.com
  port: "8080"
---
apiVersion: v1
kind: Service
metadata:
  name: web
  labels: {part: front}
spec:
  ports:
  - name: http
    port: 80
  - name: admin
    port: 81
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: prod
  annotations:
    example.com/url: https://host:1234/path
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: app
        image: old:1
        args: [--a, --b]
`
	for name, replacements := range map[string]string{
		"name": "- source: {kind: ConfigMap, name: values}\n  targets: [{select: {kind: Service}, fieldPaths: [metadata.labels.part]}]",
		"element": "- source: {kind: ConfigMap, fieldPath: data.port}\n" +
			"  targets: [{select: {name: web}, reject: [{kind: Deployment}], fieldPaths: ['spec.ports.[name=admin].port']}]",
		"all": "- source: {kind: ConfigMap, fieldPath: data.port}\n  targets: [{select: {kind: Service}, fieldPaths: [spec.ports.*.port]}]",
		"place": "- source: {kind: ConfigMap, fieldPath: data.host}\n" +
			"  targets: [{select: {kind: Deploy.*}, fieldPaths: [spec.template.spec.containers.0.args.1]}]",
		"brackets": "- source: {kind: ConfigMap, fieldPath: data.host}\n" +
			"  targets: [{select: {namespace: prod}, fieldPaths: ['metadata.annotations.[example.com/url]']}]",
		"parts": "- source: {kind: ConfigMap, fieldPath: data.host, options: {delimiter: ., index: 1}}\n" +
			"  targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.annotations.example\\.com/url'], options: {delimiter: ':', index: 1}}]",
		"before": "- source: {kind: ConfigMap, fieldPath: data.host}\n" +
			"  targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.[name=app].image'], options: {delimiter: /, index: -1}}]",
		"create": "- source: {kind: ConfigMap, fieldPath: data.host}\n" +
			"  targets: [{select: {labelSelector: part=front}, fieldPaths: [metadata.annotations.a, spec.x.y], options: {create: true}}]",
		"create an element": "- source: {kind: ConfigMap, fieldPath: data.host}\n" +
			"  targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.[name=new].image'], options: {create: true}}]",
		"a map":        "- source: {kind: Service, fieldPath: spec.ports}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.ports], options: {create: true}}]",
		"a fixed text": "- sourceValue: fixed\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.host]}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: r}\nreplacements:\n" + replacements + "\n"
			got, _, err := New(Options{}).Render(t.Context(), packageOf(
				"Kptfile", kptfileOf("{image: apply-replacements, configPath: r.yaml}"), "r.yaml", config, "a.yaml", objects))
			if err != nil {
				t.Fatal(err)
			}
			filter := kustomize.Filter{}
			if err := yaml.Unmarshal([]byte(config), &filter); err != nil {
				t.Fatal(err)
			}
			want, err := filter.Filter(nodes(t, objects))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(said(t, want), said(t, nodes(t, string(got["a.yaml"].Content)))); diff != "" {
				t.Errorf("(-kustomize +ours):\n%s", diff)
			}
		})
	}
}

func nodes(t *testing.T, text string) []*yaml.RNode {
	t.Helper()
	read := []*yaml.RNode{}
	for one := range strings.SplitSeq(text, "---\n") {
		node, err := yaml.Parse(one)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, node)
	}
	return read
}

// said is what the objects say, whatever they look like.
func said(t *testing.T, objects []*yaml.RNode) []any {
	t.Helper()
	all := []any{}
	for _, object := range objects {
		text, err := object.String()
		if err != nil {
			t.Fatal(err)
		}
		var one any
		if err := yaml.Unmarshal([]byte(text), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}
