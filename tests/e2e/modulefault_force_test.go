package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

func forced(spec *modulesv1.ModuleInstallationSpec) { spec.Force = true }

// fixture is an object of a release with a field that cannot be changed.
type fixture struct {
	gvk      schema.GroupVersionKind
	name     string
	manifest string // with VALUE in the field
	one, two string
	field    string
}

// id is the UID of the object as it is now.
func (f fixture) id(ctx context.Context, s moduleScene) (types.UID, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(f.gvk)
	err := env.Client.Get(ctx, s.key(f.name), obj)
	return obj.UID, err
}

func (f fixture) with(value string) string { return strings.ReplaceAll(f.manifest, "VALUE", value) }

func fixtures() []fixture {
	return []fixture{
		{
			schema.GroupVersionKind{Version: "v1", Kind: "Service"},
			"service",
			"apiVersion: v1\nkind: Service\nmetadata: {name: service}\nspec:\n  clusterIP: VALUE\n  ports: [{port: 80}]\n", "10.0.0.9", "10.0.0.10", "spec.clusterIPs[0]",
		},
		{
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			"deployment",
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: deployment}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: VALUE}}\n" +
				"  template:\n    metadata: {labels: {app: VALUE}}\n    spec: {containers: [{name: main, image: foo}]}\n", "one", "two", "spec.selector",
		},
		{
			schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
			"job",
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec:\n  suspend: true\n" +
				"  template:\n    spec: {restartPolicy: Never, containers: [{name: VALUE, image: foo}]}\n", "one", "two", "spec.template",
		},
	}
}

// keepers hold what nobody could bring back.
func (s moduleScene) keepers() []fixture {
	return []fixture{
		{
			schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"},
			"claim",
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim}\nspec:\n  storageClassName: VALUE\n" +
				"  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n", "slow", "fast", "spec",
		},
		{
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"},
			"stateful",
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: stateful}\nspec:\n  replicas: 0\n  serviceName: VALUE\n" +
				"  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}\n  selector: {matchLabels: {app: stateful}}\n" +
				"  template:\n    metadata: {labels: {app: stateful}}\n    spec: {containers: [{name: main, image: foo}]}\n" +
				"  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
			"one", "two", "spec",
		},
		{
			schema.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"},
			"precious",
			s.widget("precious", "VALUE"), "one", "two", "spec.owner",
		},
	}
}

// sealed is a CRD whose objects keep their owner for ever.
func (s moduleScene) sealed() string {
	return strings.Replace(s.widgetFiles("1.0.0")["zcrd.yaml"], "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		`{type: object, properties: {spec: {type: object, properties: {owner: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: owner is immutable}]}}}}}`, 1)
}

// TestModuleForceMakesAnew: what cannot be changed in place is told with its field and what helps, and is deleted and
// made again, once, when that is asked for. What holds data is not, whoever asks.
func TestModuleForceMakesAnew(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	all := append(fixtures(), s.keepers()...)
	for i, f := range all {
		for release, value := range map[string]string{"0": f.one, "1": f.two} {
			files := map[string]string{"a.yaml": f.with(value), "b.yaml": settings("settings", release)}
			if f.gvk.Group == s.widgets() {
				files["crd.yaml"] = s.sealed()
			}
			s.release(fmt.Sprintf("1.%d.%s", i, release), files, s.managesWidgets)
		}
		s.install(f.name, byVersion(fmt.Sprintf("1.%d.0", i)))
	}
	ids := map[string]types.UID{}
	for i, f := range all {
		s.until(f.name, "is applied", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.Current != nil })
		var err error
		if ids[f.name], err = f.id(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.change(f.name, byVersion(fmt.Sprintf("1.%d.1", i)))
	}
	for _, f := range all {
		s.failing(f.name, modulesv1.AppliedCondition, modulesv1.ImmutableFieldReason, f.field)
	}
	for i, f := range fixtures() {
		obj := s.failing(f.name, modulesv1.AppliedCondition, modulesv1.ImmutableFieldReason, "spec.force")
		if id, err := f.id(t.Context(), s); err != nil || id != ids[f.name] {
			t.Errorf("%s was made anew without being asked: %v", f.name, err)
		}
		t.Log(conditions.GetMessage(obj, meta.ReadyCondition))
		s.change(f.name, forced)
		version := fmt.Sprintf("1.%d.1", i)
		s.until(f.name, "is applied by force", func(obj *modulesv1.ModuleInstallation) bool {
			return obj.Status.Current != nil && obj.Status.Current.Version == version
		})
		if id, err := f.id(t.Context(), s); err != nil || id == ids[f.name] {
			t.Errorf("%s is still the same object: %v", f.name, err)
		}
		s.reconcile(f.name)
	}
	for _, f := range s.keepers() {
		s.change(f.name, forced)
		obj := s.failing(f.name, modulesv1.AppliedCondition, modulesv1.ImmutableFieldReason, "spec.force does not delete it")
		t.Log(conditions.GetMessage(obj, meta.ReadyCondition))
		s.reconcile(f.name)
		if id, err := f.id(t.Context(), s); err != nil || id != ids[f.name] {
			t.Errorf("%s was deleted for its data: %v", f.name, err)
		}
	}
	deleted := map[string]int{}
	for _, call := range only(s.memberCalls(), verbDelete) {
		deleted[call.Object.Resource+"/"+call.Object.Name]++
	}
	for _, want := range []string{"services/service", "deployments/deployment", "jobs/job"} {
		if deleted[want] != 1 {
			t.Errorf("%s was deleted %d times, want once", want, deleted[want])
		}
	}
	if len(deleted) != len(fixtures()) {
		t.Errorf("deleted %v", deleted)
	}
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(s.keepers()[2].gvk)
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "precious"}, widget); err != nil {
		t.Error(err)
	}
}
