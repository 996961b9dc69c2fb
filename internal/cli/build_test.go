package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder is one with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, content := range files {
		place := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// TestBuild: the objects as the controllers make them, with the config of an installation, and no value of a Secret.
func TestBuild(t *testing.T) {
	t.Parallel()
	top := folder(t, map[string]string{
		"app/config.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {size: '${size}', key: canary-value}\n",
		"app/key.yaml":                  "apiVersion: v1\nkind: Secret\nmetadata: {name: k}\nstringData: {password: canary-value}\n",
		"kustomized/kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: pre-\n", "kustomized/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
		"remote/kustomization.yaml": "resources: ['https://example.com/base']\n", "empty/readme.md": "nothing",
	})
	file := filepath.Join(folder(t, map[string]string{"i.yaml": installation("foo", ", config: {substitute: {size: one}, commonMetadata: {labels: {of: it}}}", "{}")}), "i.yaml")
	for name, tc := range map[string]struct {
		args  []string
		code  int
		wants []string
	}{
		"Config":     {[]string{top, "--path", "app", "-f", file}, 0, []string{"size: one\n", "of: it\n", "password: (hidden ", "  key: (hidden "}},
		"Set":        {[]string{top, "--path", "app", "-f", file, "--set", "size=two"}, 0, []string{"size: two\n"}},
		"Shown":      {[]string{top, "--path", "app", "--set", "size=two", "--show-secrets"}, 0, []string{"password: Y2FuYXJ5LXZhbHVl\n"}},
		"Kustomized": {[]string{filepath.Join(top, "kustomized")}, 0, []string{"name: pre-b\n"}},
		"Remote":     {[]string{filepath.Join(top, "remote")}, 2, []string{"kustomization asks for what is not allowed"}},
		"Empty":      {[]string{filepath.Join(top, "empty")}, 2, []string{"nothing to apply"}},
		"Outside":    {[]string{top, "--path", "../elsewhere"}, 2, []string{"path is not a folder of the artifact"}},
		"Missing":    {[]string{filepath.Join(top, "none")}, 2, []string{"no such file"}},
		"Unset":      {[]string{top, "--path", "app", "--set", "other=x"}, 2, []string{"variable substitution", "size"}},
		"None":       {nil, 3, []string{"one folder has to be named"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := typed(t, append([]string{"build"}, tc.args...)...)
			for _, want := range tc.wants {
				if !strings.Contains(got.out+got.told, want) {
					t.Errorf("%q is not told", want)
				}
			}
			if got.code != tc.code || name != "Shown" && strings.Contains(got.out+got.told, "canary") {
				t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
			}
		})
	}
}
