package cli_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/archive"
)

// TestNothingOfASecretIsToldOfAPlan: neither its value nor what functions of substitution make of it, be it in an object, in what one is
// called, or in what is wrong with one.
func TestNothingOfASecretIsToldOfAPlan(t *testing.T) {
	t.Parallel()
	namespace, content := golden(t)
	store(t, namespace, "apiVersion: v1\nkind: Secret\nmetadata: {name: values}\nstringData: {token: hunter2-canary, flag: enabled, word: пароль, none: ''}\n")
	object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}.patch("spec: {config: {substituteFrom: [{kind: Secret, name: values}]}}")
	const start = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
	for name, test := range map[string]struct{ object, want string }{
		"Twice":       {start + "'n-${token:0:5}'}\n---\n" + start + "'n-${token:0:5}'}\n", "is there twice"},
		"TwicePlaced": {start + "'n-${token:0:5}'}\n---\n" + start + "'n-${token:0:5}', namespace: " + namespace + "}\n", "is there twice"},
		"Name":        {start + "'${token:0:5}/a'}\n", "the name"},
		"Annotation":  {start + "a, annotations: {modules.sluice.dev/force: '${token:0:5}'}}\n", "modules.sluice.dev/force"},
		"Kind":        {"apiVersion: v1\nkind: '${token:0:5}/a'\nmetadata: {name: a}\n", "the kind"},
		"Called":      {start + "'n-${token:0:5}'}\ndata: {part: 'x${token:0:5}', plain: seen}\n", ""},
		"Entry":       {start + "one}\ndata: {'${token:0:5}': plain}\n", ""},
		"Needed":      {start + "one, annotations: {modules.sluice.dev/force: '${flag}'}}\ndata: {part: '${token:0:5}'}\n", "with other values"},
		"Letters":     {start + "one}\ndata: {part: '${word:0:6}'}\n", ""},
	} {
		var packed bytes.Buffer
		files := folder(t, map[string]string{"a.yaml": test.object})
		if err := archive.Write(t.Context(), &packed, os.DirFS(files), nil, archive.Limits{}); err != nil {
			t.Fatal(err)
		}
		content = filepath.Join(filepath.Dir(content), name+".tar.gz")
		if err := os.WriteFile(content, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		object{t, repositories, namespace, "next"}.patch(fmt.Sprintf("status: {artifact: {digest: 'sha256:%x', size: %d}}", sha256.Sum256(packed.Bytes()), packed.Len()))
		for _, line := range []string{"build mi/foo", "plan foo", "plan foo -o json --evidence none", "plan foo --detail yaml --evidence read", "plan foo -o markdown"} {
			got := run(t, env.Kubeconfig, append(strings.Fields(line), "-n", namespace, "--artifact", content)...)
			said := got.out + got.told
			if strings.Contains(said, "hunt") || strings.Contains(said, "пар") || !strings.Contains(said, test.want) || test.want == "" && got.out == "" {
				t.Errorf("%s, %s: ended with %d, %s", name, line, got.code, said)
			}
		}
	}
}
