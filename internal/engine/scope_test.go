package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// issuer is a kind that lives outside namespaces, of a group that only this test has.
func (r *rig) issuer() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "issuer." + r.namespace + ".example.com", Version: "v1", Kind: "Issuer"}
}

// issuerCRD is its CRD, which somebody else brings.
func (r *rig) issuerCRD() *unstructured.Unstructured {
	group := r.issuer().Group
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "issuers." + group},
		"spec": map[string]any{
			"group": group, "scope": "Cluster",
			"names": map[string]any{"kind": "Issuer", "listKind": "IssuerList", "plural": "issuers", "singular": "issuer"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
}

// issuerFiles are a ConfigMap and an object of the kind.
func (r *rig) issuerFiles() map[string]string {
	files := configMapFiles("a", "1")
	files["issuer.yaml"] = fmt.Sprintf("apiVersion: %s/v1\nkind: Issuer\nmetadata: {name: letsencrypt}\nspec: {a: b}\n", r.issuer().Group)
	return files
}

// issued says whether the object is there.
func (r *rig) issued() bool {
	r.t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(r.issuer())
	return env.Client.Get(r.t.Context(), client.ObjectKey{Name: "letsencrypt"}, found) == nil
}

// refused does rounds until one fails with the text.
func (r *rig) refused(text string) {
	r.t.Helper()
	testenv.Eventually(r.t, "an error that says "+text, func(ctx context.Context) (bool, string) {
		_, err := r.engine.Reconcile(ctx, r.in)
		if err == nil {
			return false, "no error"
		}
		return strings.Contains(err.Error(), text), err.Error()
	})
}

// A release is installed before the CRD of one of its objects is: that there is no namespace to the kind shows later.
func TestAKindTurnsOutToLiveOutsideNamespaces(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		finish func(*rig)
	}{
		"Installed": {reason: "what was claimed in a namespace cannot be there, so that it does not keep the upgrade", finish: func(r *rig) {
			r.settle("installed", func(out engine.Outcome) bool { return settled(out) && r.issued() })
			if members := r.members(); len(members) != 2 {
				r.t.Errorf("members are %v", members)
			}
		}},
		"Deleted": {reason: "nor does it keep the deletion, though the kind has become known only then", finish: func(*rig) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			r := newRig(t)
			r.in.Target = r.target("1.0.0", r.issuerFiles())
			r.refused("does not serve")
			crd := r.issuerCRD()
			check(t, env.Client.Create(t.Context(), crd))
			t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), crd) })
			tc.finish(r)
			r.in.Deleting = true
			r.settle("deleted", done)
			if r.issued() {
				t.Error("the object is still there")
			}
		})
	}
}

// The CRD of a release does not serve the version that an object of the same release has: nothing is to be waited for,
// and the API server is not asked for its kinds again and again.
func TestAVersionThatNobodyServesIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	crd, err := yaml.Marshal(r.issuerCRD())
	check(t, err)
	files := r.issuerFiles()
	files["crd.yaml"] = string(crd)
	files["issuer.yaml"] = strings.Replace(files["issuer.yaml"], "/v1\n", "/v2\n", 1)
	r.in.Target = r.target("1.0.0", files)
	r.refused("in version v2")
	r.in.Deleting = true
	r.settle("deleted", done)
}

// A kind that was known when the release was installed is not known after a restart.
func TestAnInstalledReleaseIsTheSameWithoutItsKind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	crd := r.issuerCRD()
	check(t, env.Client.Create(t.Context(), crd))
	r.in.Target = r.target("1.0.0", r.issuerFiles())
	r.settle("installed", settled)
	check(t, env.Client.Delete(t.Context(), crd))
	testenv.Eventually(t, "the kind is gone", func(context.Context) (bool, string) { return !r.issued(), "" })
	r.start(nil)
	// That the object is missing is told in one way or another, once the watch or the API server's kinds have it so.
	testenv.Eventually(t, "the object is missed", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		return err != nil || !settled(out), fmt.Sprintf("%+v", out)
	})
	record := r.inventory()
	if record.Data.Attempt != nil || len(record.Data.Members) != 2 {
		t.Errorf("an attempt has begun at what is installed: %+v; members %v", record.Data.Attempt, r.members())
	}
}

// TestWhatHasNotBegunIsNotRendered: what a release renders to is not remembered while one of its kinds is unknown.
func TestWhatHasNotBegunIsNotRendered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", r.issuerFiles())
	if begun, err := r.engine.Begun(t.Context(), r.in); begun || err != nil || r.rendered() != 0 {
		t.Errorf("begun %v, %d renders, %v", begun, r.rendered(), err)
	}
}
