package cli_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/upstream/registry"
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
		"harmful/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h}\ndata: {a: \"x\\u202ey\\u009b2Jz\\e[2J\"}\n",
		"merged/kustomization.yaml":  "resources: [../app/key.yaml]\npatches:\n- {target: {kind: Secret}, patch: 'stringData: {password: canary-value}'}\n",
		"patched/kustomization.yaml": "resources: [../app/key.yaml]\npatches:\n- {target: {kind: Secret}, patch: '[{op: put, value: canary-value}]'}\n",
		"doubled/p.yaml":             "[]", "doubled/kustomization.yaml": "resources: [../app/key.yaml]\npatches:\n- {path: p.yaml, patch: 'stringData: {password: canary-value}'}\n",
		"literal/kustomization.yaml": "secretGenerator:\n- {name: k, literals: [canary-value]}\n",
		"remote/kustomization.yaml":  "resources: ['https://example.com/base']\n", "empty/readme.md": "nothing",
		"left/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "left/.sourceignore": "/tests\n", "left/tests/broken.yaml": "on: push\n",
	})
	if err := os.Symlink("cm.yaml", filepath.Join(top, "left", "link.yaml")); err != nil {
		t.Fatal(err)
	}
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
		"Harmful":    {[]string{top, "--path", "harmful"}, 0, []string{`a: "x\u202ey`}},
		"Merged":     {[]string{top, "--path", "merged"}, 2, []string{"unable to parse SM or JSON patch from [patch: (hidden)]"}},
		"Patched":    {[]string{top, "--path", "patched"}, 2, []string{"unable to parse SM or JSON patch from [patch: (hidden)]"}},
		"Doubled":    {[]string{top, "--path", "doubled"}, 2, []string{"patch and path can't be set at the same time"}},
		"Literal":    {[]string{top, "--path", "literal"}, 2, []string{"literal sources (hidden)"}},
		"Remote":     {[]string{filepath.Join(top, "remote")}, 2, []string{"kustomization asks for what is not allowed"}},
		"Left":       {[]string{filepath.Join(top, "left")}, 0, []string{"name: c\n"}},
		"Empty":      {[]string{filepath.Join(top, "empty")}, 2, []string{"nothing to apply"}},
		"Outside":    {[]string{top, "--path", "../elsewhere"}, 2, []string{"path is not a folder of the artifact"}},
		"Missing":    {[]string{filepath.Join(top, "none")}, 2, []string{"no such file"}},
		"Unset":      {[]string{top, "--path", "app", "--set", "other=x"}, 2, []string{"variable substitution", "size"}},
		"None":       {nil, 3, []string{"one folder has to be named"}},
		"Release":    {[]string{filepath.Join(top, "kustomized"), "--version", "2.0.0"}, 3, []string{"--version is not for a folder"}},
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

// TestBuildOfAnArtifact: what was pushed, by its tag and by its digest, becomes what the folder does.
func TestBuildOfAnArtifact(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	site := registry.ForTest(t, registry.Options{})
	files := map[string]string{
		"app/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {size: '${size}'}\n",
		"key.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: k}\nstringData: {password: canary-value}\n",
	}
	at := pushedTo(t, site, "1.0.0", files)
	_, digest, _ := strings.Cut(at, "@")
	file := filepath.Join(folder(t, map[string]string{"i.yaml": installation("foo", ", config: {substitute: {size: one}}", "{}")}), "i.yaml")
	flags := []string{"--show-secrets", "-f", file}
	want := typed(t, append([]string{"build", folder(t, files)}, flags...)...)
	if want.code != 0 || !strings.Contains(want.out, "size: one") {
		t.Fatal(want)
	}
	for _, of := range []string{site.URL("modules/foo") + ":1.0.0", site.URL("modules/foo") + "@" + digest} {
		if got := typed(t, append([]string{"build", of, "--insecure-registry"}, flags...)...); got.code != 0 || got.out != want.out {
			t.Errorf("%s: ended with %d, %s: %s", of, got.code, got.told, got.out)
		}
	}
	for line, tc := range map[string]struct {
		code int
		want string
	}{
		site.URL("modules/foo") + ":1.0.0 --set size=two --path app": {0, "size: two"},
		site.URL("modules/foo") + ":1.0.0 --set size=two":            {0, "password: (hidden "},
		site.URL("modules/foo") + ":9.9.9":                           {2, "not found"},
		site.URL("modules/foo"):                                      {3, "a tag or a digest has to be named"},
		"oci://UPPER:1":                                              {3, "it is written as oci://REPOSITORY:TAG"},
		site.URL("modules/foo") + ":1.0.0 --version 1.0.0":           {3, "version"},
	} {
		if got := typed(t, append([]string{"build", "--insecure-registry"}, strings.Fields(line)...)...); got.code != tc.code || !strings.Contains(got.out+got.told, tc.want) || strings.Contains(got.out+got.told, "canary") {
			t.Errorf("%s: ended with %d, %s: %s", line, got.code, got.told, got.out)
		}
	}
}

// TestBuildOfAnInstallation: the release that it is to have, with its own config, its labels and its namespace, and no value of a Secret.
func TestBuildOfAnInstallation(t *testing.T) {
	t.Parallel()
	namespace, content := golden(t)
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	foo.patch("spec: {config: {substitute: {a: b}, commonMetadata: {annotations: {of: it}}}}")
	build := func(more ...string) answer {
		return run(t, env.Kubeconfig, append([]string{"build", "mi/foo", "-n", namespace, "--system-namespace", namespace}, more...)...)
	}
	got := build("--artifact", content)
	for _, want := range []string{"of: it", "namespace: " + namespace, "sluice.dev/", "made: anew", "key: (hidden "} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not told: %s", want, got.out)
		}
	}
	if want := "Of release 3.0.0 (template foo-3.0.0), which is held: AwaitingApproval"; got.code != 0 || !strings.Contains(got.told, want) || strings.Contains(got.out+got.told, "canary") {
		t.Errorf("ended with %d: %s%s", got.code, got.told, got.out)
	}
	if shown := build("--artifact", content, "--show-secrets"); !strings.Contains(shown.out, base64.StdEncoding.EncodeToString([]byte("another-canary"))) {
		t.Errorf("ended with %d: %s%s", shown.code, shown.told, shown.out)
	}
	file := filepath.Join(folder(t, map[string]string{"short": "other"}), "short")
	if other := build("--artifact", file); other.code != 2 || !strings.Contains(other.told, "does not have the announced digest") {
		t.Errorf("ended with %d: %s%s", other.code, other.told, other.out)
	}
	viewer := grant(t, namespace, rbacv1.PolicyRule{
		APIGroups: []string{"modules.sluice.dev", "source.toolkit.fluxcd.io"}, Resources: []string{"moduleinstallations", "moduletemplates", "modules", "gitrepositories"}, Verbs: []string{"get", "list"},
	})
	if seen := run(t, viewer, "build", "mi/foo", "-n", namespace, "--system-namespace", namespace, "--artifact", content); seen.code != 0 || seen.out == "" {
		t.Errorf("whoever may read neither the Inventory nor the members ended with %d: %s", seen.code, seen.told)
	}
	if absent := run(t, env.Kubeconfig, "build", "mi/none", "-n", namespace); absent.code != 2 || !strings.Contains(absent.told, "not found") {
		t.Errorf("ended with %d: %s", absent.code, absent.told)
	}
	if both := build("--path", "app"); both.code != 3 {
		t.Errorf("ended with %d: %s", both.code, both.told)
	}
}
