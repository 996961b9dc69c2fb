package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// rivalDefinition is a CRD that takes the name of the kind of widgets, so that theirs is never established.
func (s moduleScene) rivalDefinition() *unstructured.Unstructured {
	s.t.Helper()
	text := strings.NewReplacer("widgets."+s.widgets(), "gadgets."+s.widgets(), "plural: widgets, singular: widget", "plural: gadgets, singular: gadget").
		Replace(s.widgetFiles("1.0.0")["zcrd.yaml"])
	obj := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		s.t.Fatal(err)
	}
	s.make(obj)
	// It is not asked whether gadgets are served: a client that did would take them for widgets ever after.
	s.eventually("gadgets are established", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		established := slices.ContainsFunc(all, func(one any) bool {
			condition, ok := one.(map[string]any)
			return ok && condition["type"] == "Established" && condition["status"] == "True"
		})
		return err == nil && established, fmt.Sprint(all, err)
	})
	return obj
}

// TestModuleGateThatStaysShutHoldsNobody: objects of a kind wait for its definition. The installation says so, fails
// once its time is up, and goes on when the definition is established. No worker waits meanwhile.
func TestModuleGateThatStaysShutHoldsNobody(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t, append([]string{"--concurrent=1"}, withEndpoints...)...)
	rival := s.rivalDefinition()
	files := s.widgetFiles("1.0.0")
	s.release("1.0.0", files)
	s.release("2.0.0", fooFiles("2.0.0"))
	s.install("app", byVersion("1.0.0"), timeout(time.Hour))
	definition := "CustomResourceDefinition widgets." + s.widgets()
	s.until("app", "waits for the definition", func(obj *modulesv1.ModuleInstallation) bool {
		ready := condition(obj, meta.ReadyCondition)
		return ready.Status == metav1.ConditionUnknown && strings.Contains(ready.Message, definition)
	})
	s.install("neighbour", byVersion("2.0.0"))
	s.ready("neighbour", "2.0.0")
	s.eventually("no worker waits", func(ctx context.Context) (bool, string) {
		active, err := s.metric(ctx, `controller_runtime_active_workers{controller="moduleinstallation"`)
		return err == nil && active == 0, fmt.Sprint(active, err)
	})
	if obj := s.get("app"); obj.Status.Current != nil {
		t.Errorf("it counts as installed: %s", asJSON(obj.Status))
	}
	s.change("app", timeout(time.Second))
	s.failing("app", modulesv1.AppliedCondition, modulesv1.ApplyFailedReason, "widgets."+s.widgets())
	if err := env.Client.Delete(t.Context(), rival); err != nil {
		t.Fatal(err)
	}
	s.ready("app", "1.0.0")
	s.exact("app", append(s.widgetMembers(), "Widget/built-in")...)
}

// TestModuleWaitsOutWebhooksAndNamespaces: what the cluster refuses for now is told with its cause, and tried again.
// What is installed stays.
func TestModuleWaitsOutWebhooksAndNamespaces(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.release("1.1.0", fooFiles("1.1.0"))
	s.install("app", byVersion("1.0.0"))
	s.ready("app", "1.0.0")
	fail, none, url := admissionv1.Fail, admissionv1.SideEffectClassNone, "https://127.0.0.1:1/"
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "down.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	s.make(webhook)
	s.t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), webhook) })
	s.eventually("the webhook is asked", func(ctx context.Context) (bool, string) {
		err := env.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "probe-"}})
		return err != nil && strings.Contains(err.Error(), "down.example.com"), fmt.Sprint(err)
	})
	s.change("app", byVersion("1.1.0"))
	obj := s.failing("app", modulesv1.AppliedCondition, modulesv1.ApplyFailedReason, "down.example.com")
	if obj.Status.Current == nil || obj.Status.Current.Version != "1.0.0" {
		t.Errorf("it counts as upgraded: %s", asJSON(obj.Status))
	}
	s.says("only-1.0.0-app", "1.0.0")
	if err := env.Client.Delete(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	s.ready("app", "1.1.0")
	s.exact("app", fooMembers("app", "1.1.0")...)

	// The namespace of another release is on its way out, and takes its time.
	inner := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-inner"}}
	s.make(inner)
	keeper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inner.Name, Name: "keeper", Finalizers: []string{"example.com/keep"}}}
	s.make(keeper)
	if err := env.Client.Delete(t.Context(), inner.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	s.release("2.0.0", map[string]string{"inner.yaml": strings.Replace(settings("inner", "2.0.0"), "metadata:\n", "metadata:\n  namespace: "+inner.Name+"\n", 1)})
	s.release("2.1.0", s.widgetFiles("2.1.0"))
	s.install("guest", byVersion("2.0.0"))
	s.failing("guest", modulesv1.AppliedCondition, modulesv1.ApplyFailedReason, "the namespace "+inner.Name+" is being deleted")
	s.install("host", byVersion("2.1.0"))
	s.failing("host", modulesv1.AppliedCondition, modulesv1.ApplyFailedReason, "Namespace/"+inner.Name+" is being deleted")
	patch(s, keeper, func() { keeper.Finalizers = nil })
	s.ready("host", "2.1.0")
	s.ready("guest", "2.0.0")
	s.exact("host", "ConfigMap/inner-host", "ConfigMap/settings-host", "Namespace/"+inner.Name, "CustomResourceDefinition/widgets."+s.widgets(), "Widget/built-in")
	s.exact("guest", "ConfigMap/inner-guest")
}
