package build_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/engine/build"
)

// TestWhatVariablesStandForIsNotQuoted: it may come from a Secret, and what is wrong is told to whoever sees the installation.
func TestWhatVariablesStandForIsNotQuoted(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"name": configMap("${a}", ""), "namespace": configMap("one\n  namespace: ${a}", ""), "kind": "apiVersion: v1\nkind: ${a}\nmetadata: {name: a}\n",
	} {
		files := tree(map[string]string{"a.yaml": object})
		_, err := build.New(build.Options{}).Build(t.Context(), build.Request{Tree: files, Substitute: map[string]string{"a": "canary/value"}})
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "the "+name+" may not contain") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
