package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExport: what was asked for, so that it can be asked for elsewhere; nothing that a controller makes by itself.
func TestExport(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: app, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', note: kept}}\nspec: {url: 'https://example.com/a', interval: 1m}\nstatus: {observedGeneration: 1}\n")
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: made, annotations: {modules.sluice.dev/template: t}}\nspec: {url: 'oci://example.com/a', interval: 1m}\n")
	want := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  annotations:\n    note: kept\n  labels:\n    in: " + namespace +
		"\n  name: app\n  namespace: " + namespace + "\nspec:\n  interval: 1m\n  timeout: 60s\n  url: https://example.com/a\n"
	got := run(t, env.Kubeconfig, "export", "sources", "-n", namespace)
	if diff := cmp.Diff(want, got.out); diff != "" || got.code != 0 {
		t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
	}
	if named := run(t, env.Kubeconfig, "export", "ocirepo/made", "-n", namespace); !strings.Contains(named.out, "name: made") {
		t.Errorf("what is named is written: %s", named.told)
	}
	if none := run(t, env.Kubeconfig, "export", "mi", "-n", namespace); none.code != 0 || none.out != "" || !strings.Contains(none.told, "There are none in namespace "+namespace) {
		t.Errorf("ended with %d: %s%s", none.code, none.out, none.told)
	}
}
