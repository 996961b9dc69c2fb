package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
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
		add(meta.RESTScopeNamespace, "coordination.k8s.io", "Lease"):                "edit",
		add(meta.RESTScopeNamespace, modulesv1.GroupVersion.Group, "Inventory"):     "sluice-operate",
		{Group: "example.com", Kind: "Unknown"}:                                     "view",
	} {
		if got := reads(known, gvk); got != want {
			t.Errorf("%v is said to be read by %s", gvk, got)
		}
	}
}

// TestNoClusterRoleServesAKind: where a list fails for another reason than a right, none is named.
func TestNoClusterRoleServesAKind(t *testing.T) {
	t.Parallel()
	s := &session{WithWatch: interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Basket"}}
	}})}
	obj := &modulesv1.ModuleInstallation{}
	obj.Status.Inventory = &modulesv1.InventoryReference{Contents: []modulesv1.InventoryContent{{Group: "example.com", Version: "v1", Kind: "Basket", Namespaces: []string{"b"}, Count: 1}}}
	_, err := s.found(t.Context(), obj)
	if told, ok := errors.AsType[*CommandError](err); !ok || strings.Contains(strings.Join(told.Help, " "), "ClusterRole") {
		t.Errorf("it ends with %v", err)
	}
}
