package function

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

// TestObjectsAreAddedToFilesOfThePackageAlone is about where an object may go that a function adds.
func TestObjectsAreAddedToFilesOfThePackageAlone(t *testing.T) {
	t.Parallel()
	const sub = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: sub\n"
	for name, c := range map[string]struct{ reason, file, want string }{
		"beside":      {"A file of the package takes it.", "b.yaml", ""},
		"deep":        {"Folders are made on the way.", "x/y/z.yml", ""},
		"above":       {"Nothing is written outside of the package.", "../b.yaml", "is not in the package"},
		"absolute":    {"Nor anywhere on the machine.", "/b.yaml", "is not in the package"},
		"roundabout":  {"However it is said.", "x/../../b.yaml", "is not in the package"},
		"subpackage":  {"A package beneath is made by its own functions.", "sub/b.yaml", "the file is of another package"},
		"no objects":  {"Nobody would read it.", "b.txt", "holds no objects"},
		"Kptfile":     {"A folder becomes no package by the way.", "x/Kptfile", "holds no objects"},
		"a link":      {"What a link leads to is not the package's.", "link.yaml", "is not read"},
		"left out":    {"It would be added each time.", "ignored.yaml", "is not read"},
		"git's own":   {"Git reads it as its settings.", ".GIT/b.yaml", "cannot be in a repository"},
		"odd letters": {"Other systems read it as folders.", `a\b.yaml`, "cannot be in a repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := packageOf(
				"Kptfile", kptfileOf("{image: upsert-resource, configPath: u.yaml}"),
				"sub/Kptfile", sub, "ignored.yaml", configMap, ".krmignore", "ignored.yaml\n",
				"u.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n  annotations:\n"+
					"    config.kubernetes.io/local-config: \"true\"\n    config.kubernetes.io/target-path: '"+c.file+"'\n",
			)
			p["link.yaml"] = kpt.File{Content: []byte("u.yaml"), Mode: fs.ModeSymlink | 0o777}
			got, _, err := New(Options{}).Render(t.Context(), p)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s\n%v", c.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n", string(got[c.file].Content)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestValidatorsNeitherAddNorRemove is so because they get copies.
func TestValidatorsNeitherAddNorRemove(t *testing.T) {
	t.Parallel()
	kptfile := strings.ReplaceAll(kptfileOf("{image: remove-local-config-resources}", "{image: upsert-resource, configPath: u.yaml}"),
		"mutators", "validators")
	p := packageOf("Kptfile", kptfile, "u.yaml", upsertOf(1), "a.yaml",
		configMap+"  annotations: {config.kubernetes.io/local-config: \"true\"}\n")
	got, _, err := New(Options{}).Render(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(p), contents(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWordsPartWhereAPersonWouldPartThem keeps createSetters from comments that are true by chance.
func TestWordsPartWhereAPersonWouldPartThem(t *testing.T) {
	t.Parallel()
	c := &setterCreator{run: &run{}, scalars: []valueOf{{"registry", "example.com"}, {"image", "nginx"}, {"tag", "1.7"}, {"one", "1"}}}
	for value, want := range map[string]string{
		"nginx": "${image}", "nginx:1.7": "${image}:${tag}", "v1": "v1", "1.7.0": "1.7.0", "11": "11", "1": "${one}",
		"example.com/nginx:1.7": "${registry}/${image}:${tag}", "mynginx": "mynginx", "nginx-1": "${image}-${one}",
		"a.1.7": "a.${tag}", "1.7.": "${tag}.", "é1": "é1", "nginxnginx": "nginxnginx",
	} {
		if diff := cmp.Diff(want, c.pattern(value).String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}
