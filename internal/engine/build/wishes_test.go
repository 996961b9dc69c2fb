package build_test

import (
	"errors"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
)

// TestWishesThatCannotBeGranted: what is wrong with a patch is said, whether or not the artifact has a kustomization of
// its own.
func TestWishesThatCannotBeGranted(t *testing.T) {
	t.Parallel()
	plain := map[string]string{"a.yaml": configMap("a", "data: {a: '1'}\n")}
	kustomized := map[string]string{"a.yaml": plain["a.yaml"], "kustomization.yaml": kustomizationA}
	tests := map[string]struct {
		reason string
		patch  modulesv1.Patch
		says   string
	}{
		"syntax":  {"it is no YAML", modulesv1.Patch{Patch: "- {op: test"}, "op: test"},
		"path":    {"there is nothing to remove", modulesv1.Patch{Patch: "- {op: remove, path: /spec/absent}", Target: &modulesv1.PatchTarget{Kind: "ConfigMap"}}, "absent"},
		"nothing": {"there is no such object", modulesv1.Patch{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {a: '2'}\n"}, "ConfigMap"},
	}
	for name, test := range tests {
		for kind, files := range map[string]map[string]string{"plain": plain, "kustomized": kustomized} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				_, err := build.New(build.Options{}).Build(t.Context(), build.Request{Tree: tree(files), Patches: []modulesv1.Patch{test.patch}})
				if !errors.Is(err, build.ErrKustomize) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: got %v, want it to say %q", test.reason, err, test.says)
				}
				t.Log(err)
			})
		}
	}
}
