package approval_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// TestKubectlIsAskedForTheRight: what people type.
func TestKubectlIsAskedForTheRight(t *testing.T) {
	t.Parallel()
	const manifest = "apiVersion: packages.sluice.dev/v1alpha1\nkind: PackageRevision\nmetadata: {name: web}\n" +
		draft + ", lifecycle: Published, approvedCommit: '" + commit1 + "'}\n"
	cases := map[string]struct {
		reason string
		before string
		args   string
		editor string // what the person's editor does to the file
		input  string
		right  bool
	}{
		"Propose": {"a draft is proposed", isDraft, "edit pkgrev web", "s/lifecycle: Draft/lifecycle: Proposed/", "", false},
		"Publish": {
			"a proposal is published", isProposed, "edit pkgrev web",
			"0,/^  lifecycle: Proposed/s//  lifecycle: Published\\n  approvedCommit: '" + commit1 + "'/", "", true,
		},
		"Status": {
			"a status is edited", isNewest, "edit pkgrev web --subresource=status",
			"s/lifecycle: Published/lifecycle: Draft/", "", true,
		},
		"PatchStatus": {
			"a status is patched", isNewest,
			`patch pkgrev web --subresource=status --type=json -p [{"op":"remove","path":"/status/lifecycle"}]`, "", "", true,
		},
		"Apply":      {"a manifest is applied", isProposed, "apply -f -", "", manifest, true},
		"ServerSide": {"and on the server", isProposed, "apply --server-side --force-conflicts -f -", "", manifest, true},
		"Replace":    {"or put in place", isProposed, "replace -f -", "", manifest, true},
		"Force":      {"or deleted and made again", isNewest, "replace --force -f -", "", manifest, true},
		"Remove": {
			"a package is removed", isLeaving,
			`patch pkgrev web --type=merge -p {"spec":{"lifecycle":"Deleted","approvedCommit":"` + commit1 + `"}}`, "", "", true,
		},
		"Delete": {"an object is deleted, which changes nothing in Git", isNewest, "delete pkgrev web", "", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, user := range []string{editor, approver} {
				namespace := newNamespace(t)
				given(t, packagesv1.PackageRevisionKind, namespace, tc.before)
				said, err := kubectl(t, user, namespace, tc.args, tc.editor, tc.input)
				refused := err != nil && strings.Contains(said, right)
				if want := tc.right && user == editor; refused != want || (err != nil) != want {
					t.Errorf("%s\nas %s: want it refused: %t; kubectl said: %v\n%s", tc.reason, user, want, err, said)
				}
			}
		})
	}
}

// kubectl runs the real one, and returns what it printed.
func kubectl(t *testing.T, user, namespace, args, edit, input string) (string, error) {
	t.Helper()
	assets, err := testenv.Assets()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec sed -i \""+edit+"\" \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(args), "--kubeconfig="+env.Kubeconfig, "--namespace="+namespace, "--as="+user)
	cmd := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), words...)
	cmd.Env = append(os.Environ(), "KUBE_EDITOR="+script, "HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
