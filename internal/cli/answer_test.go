package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/upstream/registry"
)

// TestAnswersHaveTheirLists: also those that nothing is in, so that whoever goes through them need not ask first.
func TestAnswersHaveTheirLists(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	system, namespace := shelf(t)
	site := registry.ForTest(t, registry.Options{})
	store(t, namespace, asking(ranged, "", system, ""))
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: helm}\nspec: {url: 'oci://example.com/helm', type: oci}\n")
	same := edited(t, system, template("foo-1.0.0", "1.0.0", ""))
	for line, lists := range map[string][]string{
		"history foo":                  {"attempts"},
		"events foo":                   {"events"},
		"describe helmrepository/helm": {"remedies", "conditions", "events", "facts"},
		"tree helmrepository/helm":     {"root.under.0.under"},
		"trace helmrepository/helm":    {"steps"},
		"trace foo --field spec.no":    {"field.owners"},
		"why foo --version 9.0.0":      {"notes", "rules.0.leftOut", "about.edits", "about.near"},
		"impact -f " + same:            {"installations", "edits"},
		"version --client":             {"managers"},
		"push FOLDER REPOSITORY:1.0.0 --insecure-registry --dry-run": {"annotations"},
	} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			args := append(strings.Fields(strings.Replace(line, "trace foo", "trace mi/foo", 1)), "-o", "json")
			if args[0] == "push" {
				args[1] = filepath.Join(commit(t, map[string]string{"a.yaml": "a: b\n"}), "deploy")
				args[2] = strings.Replace(args[2], "REPOSITORY", site.URL("modules/foo"), 1)
			} else {
				args = append(args, "-n", namespace, "--kubeconfig", env.Kubeconfig)
			}
			got := typed(t, args...)
			var told any
			if err := json.Unmarshal([]byte(got.out), &told); err != nil {
				t.Fatalf("%v: ended with %d, %s", err, got.code, got.told)
			}
			for _, list := range lists {
				at := told
				for step := range strings.SplitSeq(list, ".") {
					if items, isList := at.([]any); isList && len(items) > 0 {
						at = items[0]
						continue
					}
					fields, _ := at.(map[string]any)
					at = fields[step]
				}
				_, isList := at.([]any)
				if _, isMap := at.(map[string]any); !isList && (!isMap || list != "annotations") {
					t.Errorf("%s is %v: %s", list, at, got.out)
				}
			}
		})
	}
}
