package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// patiently has an installation retry nothing by itself, so that whatever goes on goes on for an event.
func patiently(spec *modulesv1.ModuleInstallationSpec) {
	spec.RetryInterval = &metav1.Duration{Duration: time.Hour}
}

// TestModuleWaitsForObjectsOfAnyKind: another installation, a cluster's object, and one of a kind that is not there yet.
func TestModuleWaitsForObjectsOfAnyKind(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t, "--requeue-dependency=1h")
	s.release("1.0.0", fooFiles("1.0.0"))
	group := s.widgets()
	s.install("app", patiently, func(spec *modulesv1.ModuleInstallationSpec) {
		spec.DependsOn = []modulesv1.Dependency{
			{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind, Name: "ground"},
			{APIVersion: "v1", Kind: "Namespace", Name: s.namespace, ReadyExpr: "dep.metadata.labels['example.com/zone'] == self.metadata.namespace"},
			{APIVersion: group + "/v1", Kind: "Widget", Name: "database", ReadyExpr: "dep.status.members.all(m, m.up) && dep.status.members.size() >= 2"},
		}
	})
	waits := func(what string, words ...string) {
		t.Helper()
		s.until("app", what, func(obj *modulesv1.ModuleInstallation) bool {
			ready := conditions.Get(obj, meta.ReadyCondition)
			if ready == nil || ready.Reason != modulesv1.DependencyNotReadyReason {
				return false
			}
			for _, name := range []string{"ground", "Namespace", "database"} {
				listed := false
				for _, word := range words {
					listed = listed || word == name
				}
				if strings.Contains(ready.Message, name) != listed {
					return false
				}
			}
			return obj.Status.Current == nil
		})
	}
	waits("waits for all three", "ground", "Namespace", "database")
	s.install("ground")
	s.ready("ground", "1.0.0")
	waits("waits for two", "Namespace", "database")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch(s, namespace, func() { metav1.SetMetaDataLabel(&namespace.ObjectMeta, "example.com/zone", s.namespace) })
	waits("waits for one of a kind that is not there", "database")
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(s.widgetFiles("1.0.0")["zcrd.yaml"]), &crd.Object); err != nil {
		t.Fatal(err)
	}
	s.make(crd)
	t.Cleanup(func() {
		if err := env.Client.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Error(err)
		}
	})
	s.eventually("widgets are served", func(ctx context.Context) (bool, string) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})
		err := env.Client.List(ctx, list)
		return err == nil, fmt.Sprint(err)
	})
	database := s.makeWidget("database")
	s.sets(database, true, false)
	waits("waits for the second member", "database")
	s.sets(database, true, true)
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)

	// A next release waits again, and what runs is kept and healed meanwhile.
	s.sets(database, true)
	s.release("1.1.0", fooFiles("1.1.0"))
	s.held("app", "1.0.0", modulesv1.DependencyNotReadyReason, "database")
	s.breaks("app", "1.0.0")
	if err := env.Client.Delete(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	s.held("app", "1.0.0", modulesv1.DependencyNotReadyReason, "is missing")
	database = s.makeWidget("database")
	s.sets(database, true, true)
	s.ready("app", "1.1.0")

	// An expression that cannot be read is told at once, and nothing waits for it.
	s.install("wrong", patiently, func(spec *modulesv1.ModuleInstallationSpec) {
		spec.DependsOn = []modulesv1.Dependency{{APIVersion: "v1", Kind: "Namespace", Name: s.namespace, ReadyExpr: "dep.metadata.labels["}}
	})
	s.until("wrong", "is stalled", func(obj *modulesv1.ModuleInstallation) bool {
		stalled := conditions.Get(obj, meta.StalledCondition)
		return stalled != nil && stalled.Reason == modulesv1.DependencyNotReadyReason && strings.Contains(stalled.Message, "readyExpr")
	})
	s.change("wrong", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.DependsOn[0].ReadyExpr = "dep.metadata.labels.size() > 0"
	})
	s.ready("wrong", "1.1.0")
}

// sets says of each member of a widget whether it is up.
func (s moduleScene) sets(widget *unstructured.Unstructured, up ...bool) {
	s.t.Helper()
	members := make([]any, 0, len(up))
	for _, one := range up {
		members = append(members, map[string]any{"up": one})
	}
	patch(s, widget, func() { widget.Object["status"] = map[string]any{"members": members} })
}
