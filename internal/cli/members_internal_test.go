package cli

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhoReadsWhat: view, which most people have, has neither Secrets, nor who has which right, nor what is in no namespace.
func TestWhoReadsWhat(t *testing.T) {
	t.Parallel()
	known := meta.NewDefaultRESTMapper(nil)
	add := func(scope meta.RESTScope, group, kind string) schema.GroupVersionKind {
		gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
		known.Add(gvk, scope)
		return gvk
	}
	for gvk, want := range map[schema.GroupVersionKind]string{
		add(meta.RESTScopeNamespace, "", "ConfigMap"):                               "view",
		add(meta.RESTScopeRoot, "", "Namespace"):                                    "view",
		add(meta.RESTScopeNamespace, "", "Secret"):                                  "edit",
		add(meta.RESTScopeNamespace, "rbac.authorization.k8s.io", "Role"):           "admin",
		add(meta.RESTScopeNamespace, "rbac.authorization.k8s.io", "RoleBinding"):    "admin",
		add(meta.RESTScopeRoot, "rbac.authorization.k8s.io", "ClusterRole"):         "cluster-admin",
		add(meta.RESTScopeRoot, "apiextensions.k8s.io", "CustomResourceDefinition"): "cluster-admin",
		{Group: "example.com", Kind: "Unknown"}:                                     "view",
	} {
		if got := reads(known, gvk); got != want {
			t.Errorf("%v is said to be read by %s", gvk, got)
		}
	}
}
