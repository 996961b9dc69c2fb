package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// widgets is a group of a CRD that only this test has.
func (s moduleScene) widgets() string { return s.namespace + ".example.com" }

// widgetFiles is a release that brings a namespace with something in it, a CRD and an object of that.
func (s moduleScene) widgetFiles(version string) map[string]string {
	crd := strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.GROUP
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, "GROUP", s.widgets())
	return map[string]string{
		"a.yaml":     s.widget("built-in", "release"),
		"inner.yaml": strings.Replace(settings("inner", version), "metadata:\n", "metadata:\n  namespace: "+s.namespace+"-inner\n", 1),
		"space.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + s.namespace + "-inner\n",
		"zcrd.yaml":  crd, "settings.yaml": settings("settings", version),
	}
}

func (s moduleScene) widget(name, owner string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: Widget\nmetadata:\n  name: %s\nspec:\n  owner: %s\n", s.widgets(), name, owner)
}

// widgetMembers are its objects, but for the widget.
func (s moduleScene) widgetMembers() []string {
	return []string{
		"ConfigMap/inner-app", "ConfigMap/settings-app", "Namespace/" + s.namespace + "-inner",
		"CustomResourceDefinition/widgets." + s.widgets(),
	}
}

// managesWidgets makes widgets users' data.
func (s moduleScene) managesWidgets(spec *modulesv1.ModuleTemplateSpec) {
	spec.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"}}}
}

// makeWidget makes one as a user.
func (s moduleScene) makeWidget(name string) *unstructured.Unstructured {
	s.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"owner": "user"}}}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"})
	obj.SetNamespace(s.namespace)
	obj.SetName(name)
	s.make(obj)
	return obj
}

func TestModuleDeletionWaitsForUsersData(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", s.widgetFiles("1.0.0"), s.managesWidgets)
	s.install("app")
	s.ready("app", "1.0.0")
	mine := s.makeWidget("mine")
	before := len(s.memberCalls())
	s.remove("app")
	obj := s.until("app", "users' data blocks", func(obj *modulesv1.ModuleInstallation) bool {
		blocked := conditions.Get(obj, modulesv1.DeletionBlockedCondition)
		return blocked != nil && blocked.Status == metav1.ConditionTrue && blocked.Reason == modulesv1.DeletionBlockedReason &&
			strings.Contains(blocked.Message, s.namespace+"/mine")
	})
	want := modulesv1.DeletionBlocker{Group: s.widgets(), Kind: "Widget", Count: 1, Examples: []string{s.namespace + "/mine"}}
	if d := obj.Status.Deletion; d == nil || d.Mode != modulesv1.DeletionBlock || len(d.BlockedBy) != 1 || asJSON(d.BlockedBy[0]) != asJSON(want) {
		t.Errorf("status.deletion is %s, want to be blocked by %s", asJSON(d), asJSON(want))
	}
	s.told("app", corev1.EventTypeWarning, modulesv1.DeletionBlockedReason, "mine")
	if deleted := only(s.memberCalls()[before:], verbDelete); len(deleted) > 0 {
		t.Errorf("removed while blocked:\n%s", lines(deleted))
	}
	s.says("settings-app", "1.0.0")

	if err := env.Client.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	s.gone("app")
	s.told("app", corev1.EventTypeNormal, modulesv1.UninstalledReason, "")
	// How long it takes to go is the namespace controller's affair, which waits for the groups of every CRD that is going.
	s.eventually("the namespace goes", func(ctx context.Context) (bool, string) {
		inner := &corev1.Namespace{}
		err := env.Client.Get(ctx, client.ObjectKey{Name: s.namespace + "-inner"}, inner)
		return apierrors.IsNotFound(err) || err == nil && !inner.DeletionTimestamp.IsZero(), fmt.Sprint(err, asJSON(inner))
	})
	var order []string
	for _, r := range only(s.memberCalls()[before:], verbDelete) {
		order = append(order, r.Object.Resource)
	}
	last := slices.Index(order, "widgets")
	for _, definition := range []string{"customresourcedefinitions", "namespaces"} {
		if at := slices.Index(order, definition); at < 0 || at < last || at < slices.Index(order, "configmaps") {
			t.Errorf("removed in the order %q, want definitions behind what needs them", order)
		}
	}
	s.touchesNoTenant()
}

func TestModuleOrphaningLeavesEverything(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", s.widgetFiles("1.0.0"), s.managesWidgets)
	s.install("app")
	s.ready("app", "1.0.0")
	s.makeWidget("mine")
	s.change("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	})
	s.remove("app")
	s.gone("app")
	s.told("app", corev1.EventTypeNormal, modulesv1.OrphanedReason, "")
	s.says("settings-app", "1.0.0")
	for _, left := range []struct {
		gvk             schema.GroupVersionKind
		namespace, name string
	}{
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, s.namespace, "settings-app"},
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, s.namespace + "-inner", "inner-app"},
		{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", s.namespace + "-inner"},
		{schema.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"}, s.namespace, "built-in"},
		{schema.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"}, s.namespace, "mine"},
		{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "", "widgets." + s.widgets()},
	} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(left.gvk)
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: left.namespace, Name: left.name}, obj); err != nil {
			t.Errorf("was not left: %v", err)
			continue
		}
		for label := range obj.GetLabels() {
			if label == partOf || strings.HasPrefix(label, "modules.sluice.dev/") {
				t.Errorf("%s %s still has the label %s", left.gvk.Kind, left.name, label)
			}
		}
	}
	// Nothing belongs to anybody now, so that another installation may take it up.
	s.install("app")
	s.ready("app", "1.0.0")
	s.exact("app", append(s.widgetMembers(), "Widget/built-in")...)
}

// TestModuleLeavesWithItsNamespace: a namespace that is deleted before its installation takes the rights along that the
// installation is removed with, and goes all the same.
func TestModuleLeavesWithItsNamespace(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.account("tenant")
	s.grant("tenant", allVerbs(), "configmaps", "serviceaccounts", "roles.rbac.authorization.k8s.io")
	s.install("app", as("tenant"))
	s.ready("app", "1.0.0")
	if err := env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the namespace is gone", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKey{Name: s.namespace}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	s.touchesNoTenant()
}
