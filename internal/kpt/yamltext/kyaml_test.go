package yamltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// TestRewriteOfWhatKyamlChanges takes the nodes as kyaml leaves them, whose setters put new nodes in the places of old ones.
func TestRewriteOfWhatKyamlChanges(t *testing.T) {
	t.Parallel()
	src := `# The web server.
apiVersion: apps/v1
kind: Deployment
metadata: # kpt-merge: shop/web
  name: web
  namespace: shop # kpt-set: ${namespace}
  annotations: {}
spec:

  replicas: 3 # kpt-set: ${replicas}
  paused: false
  template:
    spec:
      containers:
      # Ours.
      - name: web
        image: 'web:v1' # kpt-set: web:${tag}
        args: [--a, --b]
`
	for name, tc := range map[string]struct {
		reason string
		change func(*kyaml.RNode) error
		want   []string // lines of the text, replaced by others
	}{
		"SetField": {
			reason: "the comment behind a field outlives its value",
			change: func(node *kyaml.RNode) error {
				return node.PipeE(kyaml.Lookup("metadata"), kyaml.SetField("namespace", kyaml.NewStringRNode("store")))
			},
			want: []string{"  namespace: shop # kpt-set: ${namespace}\n", "  namespace: store # kpt-set: ${namespace}\n"},
		},
		"SetNumber": {
			reason: "a number in quotes is a string",
			change: func(node *kyaml.RNode) error {
				return node.PipeE(kyaml.Lookup("spec"), kyaml.SetField("replicas", kyaml.NewStringRNode("5")))
			},
			want: []string{"  replicas: 3 # kpt-set: ${replicas}\n", "  replicas: \"5\" # kpt-set: ${replicas}\n"},
		},
		"SetAnnotation": {
			reason: "a mapping that was empty is filled as a block",
			change: func(node *kyaml.RNode) error { return node.PipeE(kyaml.SetAnnotation("enabled", "true")) },
			want:   []string{"  annotations: {}\n", "  annotations:\n    enabled: 'true'\n"},
		},
		"SetLabels": {
			reason: "a mapping that was not there comes behind its siblings",
			change: func(node *kyaml.RNode) error { return node.SetLabels(map[string]string{"app": "web", "on": "y"}) },
			want:   []string{"  annotations: {}\n", "  annotations: {}\n  labels:\n    app: web\n    \"on\": \"y\"\n"},
		},
		"Clear": {
			reason: "a field that is cleared goes, and nothing else does",
			change: func(node *kyaml.RNode) error { return node.PipeE(kyaml.Lookup("spec"), kyaml.Clear("paused")) },
			want:   []string{"  paused: false\n", ""},
		},
		"SetInPlace": {
			reason: "a value that is changed in its node keeps its quotes",
			change: func(node *kyaml.RNode) error {
				found, err := node.Pipe(kyaml.Lookup("spec", "template", "spec", "containers", "[name=web]", "image"))
				if err == nil {
					found.YNode().Value = "web:v2"
				}
				return err
			},
			want: []string{"'web:v1'", "'web:v2'"},
		},
		"Append": {
			reason: "an element joins a flow sequence in the style of that",
			change: func(node *kyaml.RNode) error {
				return node.PipeE(kyaml.Lookup("spec", "template", "spec", "containers", "[name=web]", "args"),
					kyaml.Append(kyaml.NewScalarRNode("--c").YNode()))
			},
			want: []string{"[--a, --b]", "[--a, --b, --c]"},
		},
		"Merge": {
			reason: "what is merged in comes behind what is there",
			change: func(node *kyaml.RNode) error {
				patch := kyaml.MustParse("spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80}]}]}}}")
				_, err := merge2.Merge(patch, node, kyaml.MergeOptions{ListIncreaseDirection: kyaml.MergeOptionsListAppend})
				return err
			},
			want: []string{"        args: [--a, --b]\n", "        args: [--a, --b]\n        ports: [{containerPort: 80}]\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := kyaml.MustParse(src)
			if err := tc.change(node); err != nil {
				t.Fatal(err)
			}
			got, err := yamltext.Rewrite([]byte(src), node.YNode())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Replace(src, tc.want[0], tc.want[1], 1), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
