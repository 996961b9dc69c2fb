package cluster_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
)

// TestApplyOfWhatIsAbsent: an apply for an object that is not there makes it in one call, and changes nothing of one that
// is, whoever has made that and whatever it is like.
func TestApplyOfWhatIsAbsent(t *testing.T) {
	t.Parallel()
	subject, count := admin(t)
	namespace := env.NewNamespace(t)
	define(t, subject, "absent.example.com", "v1")
	for name, manifest := range map[string]*unstructured.Unstructured{
		"ConfigMap": configMap(t, namespace, "me", "1"),
		"Thing":     object(t, `{apiVersion: absent.example.com/v1, kind: Thing, metadata: {name: subject, namespace: %s}, spec: {size: 1}}`, namespace),
	} {
		if _, err := subject.Namespaced(manifest.GroupVersionKind()); err != nil {
			t.Fatal(err)
		}
		absent := cluster.ApplyOptions{Manager: manager, Only: cluster.Absent()}
		count.wantCalls(t, map[string]int{"apply": 1}, func() {
			if made := apply(t, subject, manifest, absent); !made.Created || !made.Made {
				t.Errorf("%s: %+v", name, made)
			}
		})
		absent.Force = true
		if _, err := subject.Apply(t.Context(), manifest, absent); !errors.Is(err, cluster.ErrChanged) {
			t.Errorf("%s: the same again, forced: %v", name, err)
		}
	}
}

// TestListItemsAreReclaimed: what an edit has made of an item in a list goes with the next apply, once the item is
// reclaimed; what others have set beside it stays.
func TestListItemsAreReclaimed(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	manifest := object(t, `{apiVersion: v1, kind: Service, metadata: {name: subject, namespace: %s}, spec: {selector: {a: b}, ports: [{name: http, port: 80}]}}`,
		env.NewNamespace(t))
	apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
	edit := `{"metadata":{"annotations":{"note":"kept"}},"spec":{"$setElementOrder/ports":[{"port":81}],"ports":[{"name":"http","port":81,"protocol":"TCP","targetPort":80},{"$patch":"delete","port":80}]}}`
	live := manifest.DeepCopy()
	if err := env.Client.Patch(t.Context(), live, client.RawPatch(types.StrategicMergePatchType, []byte(edit)), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	if _, err := subject.Apply(t.Context(), manifest, cluster.ApplyOptions{Manager: manager, Force: true}); !errors.Is(err, cluster.ErrInvalid) {
		t.Fatalf("the premise is gone: an apply answers %v", err)
	}
	entries := cluster.Reclaim(live.GetManagedFields(), manager, manifest, cluster.ByKubectl)
	version := cluster.Version{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()}
	managed, err := subject.Manage(t.Context(), refTo(live, cluster.Applied{}), version, cluster.Management{Manager: manager, Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager, Only: managed.Version()})
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	ports, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
	if port, _ := ports[0].(map[string]any); len(ports) != 1 || port["port"] != int64(80) {
		t.Errorf("ports: %v", ports)
	}
	if diff := cmp.Diff(map[string]string{"note": "kept"}, live.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	if again := cluster.Reclaim(live.GetManagedFields(), manager, manifest, cluster.ByKubectl); again != nil {
		t.Errorf("there is something to be reclaimed still: %v", again)
	}
}

// TestFieldsAreInherited: what a manager that is no more had set, and the release does not have, goes with the next apply,
// once the entry is inherited; whoever else holds a field keeps it.
func TestFieldsAreInherited(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	namespace := env.NewNamespace(t)
	before := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: subject, namespace: %s}, data: {key: "1", dropped: "1", shared: "1"}}`, namespace)
	apply(t, subject, before, cluster.ApplyOptions{Manager: other})
	shared := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: subject, namespace: %s}, data: {shared: "1"}}`, namespace)
	apply(t, subject, shared, cluster.ApplyOptions{Manager: "somebody"})
	live, err := subject.Metadata(t.Context(), refTo(before, cluster.Applied{}))
	if err != nil {
		t.Fatal(err)
	}
	entries := cluster.Inherit(live.ManagedFields, manager, func(entry cluster.Entry) bool { return entry.Manager == other })
	managed, err := subject.Manage(t.Context(), refTo(before, cluster.Applied{}), cluster.Version{UID: live.UID, ResourceVersion: live.ResourceVersion},
		cluster.Management{Manager: manager, Entries: entries, Labels: map[string]string{cluster.PartOf: "me"}})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, subject, configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager, Only: managed.Version()})
	after := before.DeepCopy()
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"key": "1", "shared": "1"}, after.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if cluster.Inherit(live.ManagedFields, manager, func(cluster.Entry) bool { return false }) != nil {
		t.Error("entries that nobody chose are inherited")
	}
}

// TestYieldedFieldsStay: a field that the manager has yielded keeps its value when it is applied no more, whoever set it.
func TestYieldedFieldsStay(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	whole := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: %s, annotations: {a/b: "1"}}, spec: {replicas: 2,
		selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: x, image: x}, {name: c, image: i}]}}}}`, env.NewNamespace(t))
	lean := whole.DeepCopy()
	unstructured.RemoveNestedField(lean.Object, "spec", "replicas")
	unstructured.RemoveNestedField(lean.Object, "metadata", "annotations", "a/b")
	containers, _, _ := unstructured.NestedSlice(lean.Object, "spec", "template", "spec", "containers")
	second, _ := containers[1].(map[string]any)
	delete(second, "image")
	if err := unstructured.SetNestedSlice(lean.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	made := apply(t, subject, whole, cluster.ApplyOptions{Manager: manager})
	live, err := subject.Metadata(t.Context(), refTo(whole, made))
	if err != nil {
		t.Fatal(err)
	}
	pointers := []string{"/spec/replicas", "/metadata/annotations/a~1b", "/spec/template/spec/containers/1/image", "/spec/nothing", "/spec/replicas/0"}
	entries := cluster.Yield(live.ManagedFields, manager, whole, pointers)
	managed, err := subject.Manage(t.Context(), refTo(whole, made), made.Version(), cluster.Management{Entries: entries, Manager: manager})
	if err != nil {
		t.Fatal(err)
	}
	if managed.Fingerprint == made.Fingerprint {
		t.Error("the fingerprint is of the fields that were yielded still")
	}
	apply(t, subject, lean, cluster.ApplyOptions{Manager: manager})
	after := whole.DeepCopy()
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(after.Object, "spec", "replicas")
	containers, _, _ = unstructured.NestedSlice(after.Object, "spec", "template", "spec", "containers")
	second, _ = containers[1].(map[string]any)
	if image := second["image"]; replicas != 2 || image != "i" || after.GetAnnotations()["a/b"] != "1" {
		t.Errorf("replicas %d, image %v, annotations %v", replicas, image, after.GetAnnotations())
	}
	if cluster.Yield(entries, manager, whole, pointers) != nil {
		t.Error("there is something to be yielded still")
	}
}
