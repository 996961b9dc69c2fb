package kpt_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// pkg makes a package of texts.
func pkg(files map[string]string) kpt.Package {
	p := kpt.Package{}
	for name, content := range files {
		p[name] = kpt.File{Content: []byte(content), Mode: 0o644}
	}
	return p
}

// contents are the texts of a package.
func contents(p kpt.Package) map[string]string {
	files := map[string]string{}
	for name, file := range p {
		files[name] = string(file.Content)
	}
	return files
}

const kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n"

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func open(t *testing.T, p kpt.Package) *kpt.Resources {
	t.Helper()
	resources, err := kpt.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

func TestResourcesAreThoseOfPackageAndSubpackages(t *testing.T) {
	t.Parallel()
	p := pkg(map[string]string{
		"Kptfile":                kptfile,
		"cm.yaml":                "# first\n" + configMap("a") + "---\n# nothing\n---\n" + configMap("b") + "  namespace: n\n",
		"values.yaml":            "replicas: 3\n",
		"list.yml":               "- 1\n",
		"notes.txt":              "{{",
		"sub/Kptfile":            kptfile,
		"sub/deep/d.yaml":        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n",
		"chart/.krmignore":       "/templates\n",
		"chart/templates/x.yaml": "{{ .Values }}: {{\n",
	})
	p["link.yaml"] = kpt.File{Content: []byte("cm.yaml"), Mode: fs.ModeSymlink}
	type found struct {
		File  string
		Index int
		ID    string
		Sub   string
		Local bool
	}
	var got []found
	for _, item := range open(t, p).Items {
		got = append(got, found{item.File, item.Index, item.ID().String(), item.Subpackage(), item.IsLocalConfig()})
	}
	want := []found{
		{"Kptfile", 0, "Kptfile.kpt.dev web", "", true},
		{"cm.yaml", 0, "ConfigMap a", "", false},
		{"cm.yaml", 2, "ConfigMap n/b", "", false},
		{"sub/Kptfile", 0, "Kptfile.kpt.dev web", "sub", true},
		{"sub/deep/d.yaml", 0, "Deployment.apps d", "sub", false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPackageKeepsWhatWasNotChanged(t *testing.T) {
	t.Parallel()
	const odd = "# head\r\napiVersion:   v1 # core\r\nkind: 'ConfigMap'\r\nmetadata: {name:  a}\r\n\r\n...\r\n# between\r\n---\r\nnot: an object\r\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		change func(t *testing.T, r *kpt.Resources)
		want   map[string]string
	}{
		"nothing": {
			"What nobody touches keeps every byte.",
			map[string]string{"odd.yaml": odd, "no-end.yaml": "apiVersion: v1\nkind: X"},
			func(*testing.T, *kpt.Resources) {},
			map[string]string{"odd.yaml": odd, "no-end.yaml": "apiVersion: v1\nkind: X"},
		},
		"one of two": {
			"Of a file in which one object changes, the others keep every byte.",
			map[string]string{"a.yaml": "kind:  A\napiVersion: v1\nx: 1\n---\nkind:  B\napiVersion: v1\n"},
			func(t *testing.T, r *kpt.Resources) {
				t.Helper()
				if err := r.Items[0].Node.PipeE(yaml.SetField("x", yaml.NewScalarRNode("2"))); err != nil {
					t.Fatal(err)
				}
			},
			map[string]string{"a.yaml": "kind:  A\napiVersion: v1\nx: 2\n---\nkind:  B\napiVersion: v1\n"},
		},
		"last of a file": {
			"A file goes with its last object, and stays if it says something else.",
			map[string]string{
				"a.yaml": "# comment\n---\n" + configMap("a"), "b.yaml": "x: 1\n---\n" + configMap("b"), "c.yaml": "# none\n",
			},
			func(_ *testing.T, r *kpt.Resources) { r.Items = nil },
			map[string]string{"b.yaml": "x: 1\n", "c.yaml": "# none\n"},
		},
		"first of two": {
			"The line that parts two objects goes with the first.",
			map[string]string{"a.yaml": configMap("a") + "---\n" + configMap("b")},
			func(_ *testing.T, r *kpt.Resources) { r.Items = r.Items[1:] },
			map[string]string{"a.yaml": configMap("b")},
		},
		"added": {
			"New objects stand behind those that are there, or in a file of their own.",
			map[string]string{"a.yaml": "apiVersion: v1\nkind: X"},
			func(_ *testing.T, r *kpt.Resources) {
				r.Add("a.yaml", yaml.MustParse(configMap("b")))
				r.Add("new/b.yaml", yaml.MustParse(configMap("c")))
			},
			map[string]string{"a.yaml": "apiVersion: v1\nkind: X\n---\n" + configMap("b"), "new/b.yaml": configMap("c")},
		},
		"moved": {
			"An object in another file keeps its text.",
			map[string]string{"a.yaml": "# hello\nkind:   X\napiVersion: v1\n"},
			func(_ *testing.T, r *kpt.Resources) { r.Items[0].File = "b.yaml" },
			map[string]string{"b.yaml": "# hello\nkind:   X\napiVersion: v1\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resources := open(t, pkg(tc.files))
			tc.change(t, resources)
			written, err := resources.Package()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, contents(written)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, text, want string }{
		"syntax":    {"The line is that of the file, not of the document.", configMap("a") + "---\nok: 1\nbad\n", "a.yaml:7: could not find expected ':'"},
		"two roots": {"What other readers take for two documents is refused.", "a: 1\x0a--- b\n... c\n", "a.yaml:2: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := kpt.Open(pkg(map[string]string{"a.yaml": tc.text}))
			syntax := &kpt.SyntaxError{}
			if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}
