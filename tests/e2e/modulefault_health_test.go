package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// judgesWidgets says how the health of a widget is told.
func (s moduleScene) judgesWidgets(spec *modulesv1.ModuleTemplateSpec) {
	spec.Health = &modulesv1.TemplateHealth{Expressions: []modulesv1.HealthExpression{{
		APIVersion: s.widgets() + "/v1", Kind: "Widget",
		Current: "has(status.phase) && status.phase == 'Up'", Failed: "has(status.phase) && status.phase == 'Broken'",
	}}}
}

// phase has a widget say how it is, as its controller would.
func (s moduleScene) phase(name, phase string) {
	s.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"})
	obj.SetNamespace(s.namespace)
	obj.SetName(name)
	status := []byte(`{"status":{"phase":"` + phase + `"}}`)
	if err := env.Client.Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType, status), client.FieldOwner("widget-controller")); err != nil {
		s.t.Fatal(err)
	}
}

func timeout(limit time.Duration) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) { spec.Timeout = &metav1.Duration{Duration: limit} }
}

// TestModuleHealthIsToldAndComesBeforePruning: what is not healthy is waited for, then told by name; what has failed is
// told at once; and nothing of the old release is removed before all of the new one is healthy.
func TestModuleHealthIsToldAndComesBeforePruning(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", s.widgetFiles("1.0.0"), s.judgesWidgets)
	s.install("app", byVersion("1.0.0"))
	s.until("app", "waits for its widget", func(obj *modulesv1.ModuleInstallation) bool {
		healthy := condition(obj, modulesv1.HealthyCondition)
		return obj.Status.Current != nil && healthy.Status == metav1.ConditionUnknown && strings.Contains(healthy.Message, "Widget "+s.namespace+"/built-in")
	})
	s.phase("built-in", "Up")
	s.ready("app", "1.0.0")

	next := s.widgetFiles("2.0.0")
	delete(next, "settings.yaml")
	next["deployment.yaml"] = strings.Replace(deployment, "replicas: 0", "replicas: ${replicas:=1}", 1)
	s.release("2.0.0", next, s.judgesWidgets)
	s.change("app", byVersion("2.0.0"), timeout(time.Second))
	obj := s.failing("app", modulesv1.HealthyCondition, modulesv1.HealthCheckFailedReason, "Deployment/"+s.namespace+"/foo-app")
	t.Log(condition(obj, modulesv1.HealthyCondition).Message)
	if obj.Status.Current == nil || obj.Status.Current.Version != "2.0.0" || obj.Status.Current.HealthyAt != nil {
		t.Errorf("what is applied is %s, want the new release, not healthy yet", asJSON(obj.Status.Current))
	}
	old := append(s.widgetMembers(), "Widget/built-in", "Deployment/foo-app")
	s.exact("app", old...)
	s.phase("built-in", "Broken")
	s.change("app", timeout(time.Hour), func(spec *modulesv1.ModuleInstallationSpec) { spec.Config.Substitute["replicas"] = "0" })
	s.until("app", "only its widget is broken", func(obj *modulesv1.ModuleInstallation) bool {
		healthy := condition(obj, modulesv1.HealthyCondition)
		return healthy.Reason == modulesv1.HealthCheckFailedReason && healthy.Status == metav1.ConditionFalse &&
			strings.Contains(healthy.Message, "Widget/"+s.namespace+"/built-in") && !strings.Contains(healthy.Message, "foo-app")
	})
	s.exact("app", old...)
	s.says("settings-app", "1.0.0")
	s.phase("built-in", "Up")
	s.ready("app", "2.0.0")
	s.exact("app", "ConfigMap/inner-app", "Namespace/"+s.namespace+"-inner", "CustomResourceDefinition/widgets."+s.widgets(), "Widget/built-in", "Deployment/foo-app")
}

// condition is one of the object's; its zero value when there is none.
func condition(obj *modulesv1.ModuleInstallation, kind string) metav1.Condition {
	for _, c := range obj.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
