package cluster_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
)

// deployment owns lists by key, quantities and labels, which is what makes fieldsV1 rich.
const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: subject, namespace: %s, labels: {"` + cluster.PartOf + `": me}},
	spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [
		{name: z, image: i, resources: {requests: {cpu: 1000m}}, ports: [{containerPort: 80}, {containerPort: 9, protocol: UDP}]},
		{name: c, image: i, env: [{name: B, value: <&>}, {name: A, value: b}]}]}}}}`

func TestFingerprintSeesDriftAndNothingElse(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	cases := map[string]struct {
		reason      string
		patch       string
		kind        types.PatchType
		subresource string
		drift, lost bool
	}{
		"value":      {"another manager changes a value", `{"spec":{"replicas":2}}`, types.MergePatchType, "", true, false},
		"scale":      {"the scale subresource changes a value", `{"spec":{"replicas":2}}`, types.MergePatchType, "scale", true, false},
		"listed":     {"another manager changes a value in a list", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"j"}]`, types.JSONPatchType, "", true, false},
		"removed":    {"another manager removes a field", `[{"op":"remove","path":"/spec/template/spec/containers/1/env"}]`, types.JSONPatchType, "", true, false},
		"label":      {"another manager removes our label", `{"metadata":{"labels":{"` + cluster.PartOf + `":null}}}`, types.MergePatchType, "", true, false},
		"wiped":      {"somebody wipes managedFields", `{"metadata":{"managedFields":[{}]}}`, types.MergePatchType, "", true, true},
		"status":     {"a controller writes the status", `{"status":{"replicas":1}}`, types.MergePatchType, "status", false, false},
		"annotation": {"another manager annotates", `{"metadata":{"annotations":{"theirs":"x"}}}`, types.MergePatchType, "", false, false},
		"sidecar":    {"another manager adds a container", `[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"s","image":"i"}}]`, types.JSONPatchType, "", false, false},
		"key":        {"another manager adds a label", `{"metadata":{"labels":{"theirs":"x"}}}`, types.MergePatchType, "", false, false},
		"nothing":    {"a patch that changes nothing", `{}`, types.MergePatchType, "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := object(t, deployment, env.NewNamespace(t))
			applied := apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
			var err error
			live, patch := manifest.DeepCopy(), client.RawPatch(tc.kind, []byte(tc.patch))
			if tc.subresource != "" {
				err = env.Client.SubResource(tc.subresource).Patch(t.Context(), live, patch)
			} else {
				err = env.Client.Patch(t.Context(), live, patch)
			}
			if err != nil {
				t.Fatal(err)
			}
			now, err := subject.Metadata(t.Context(), refTo(manifest, applied))
			if err != nil {
				t.Fatal(err)
			}
			got := cluster.Fingerprint(now, manager)
			if drift := got != applied.Fingerprint; drift != tc.drift || (got == "") != tc.lost {
				t.Errorf("%s: fingerprint %q after %q; want drift %t, entry lost %t", tc.reason, got, applied.Fingerprint, tc.drift, tc.lost)
			}
		})
	}
}

func TestFingerprintIsTheSameWhoeverReadsIt(t *testing.T) {
	t.Parallel()
	connector, _ := connect(t, cluster.Options{})
	subject := as(t, connector, cluster.Identity{})
	namespace := env.NewNamespace(t)
	manifest := object(t, deployment, namespace)
	watches, mapping, err := connector.Connect(cluster.Identity{}, manifest.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	applied := apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
	got := map[string]metav1.Object{}
	if got["metadata"], err = subject.Metadata(t.Context(), refTo(manifest, applied)); err != nil {
		t.Fatal(err)
	}
	listed, err := watches.Resource(mapping.Resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: cluster.PartOf})
	if err != nil || len(listed.Items) != 1 {
		t.Fatalf("list: %+v, %v", listed, err)
	}
	got["list"] = &listed.Items[0]
	watch, err := watches.Resource(mapping.Resource).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	event := <-watch.ResultChan()
	seen, ok := event.Object.(metav1.Object)
	if !ok {
		t.Fatalf("the watch gave a %T", event.Object)
	}
	got["watch"] = seen
	for by, object := range got {
		if fingerprint := cluster.Fingerprint(object, manager); fingerprint != applied.Fingerprint {
			t.Errorf("read by %s: %q, when applied: %q", by, fingerprint, applied.Fingerprint)
		}
		if fingerprint := cluster.Fingerprint(object, other); fingerprint != "" {
			t.Errorf("a manager that applied nothing has the fingerprint %q", fingerprint)
		}
	}
	if len(applied.Fingerprint) != 22 {
		t.Errorf("128 bits take 22 letters: %q", applied.Fingerprint)
	}
}

func TestFingerprintTellsApartWhatItCovers(t *testing.T) {
	t.Parallel()
	at := metav1.Unix(1_700_000_000, 0)
	later := metav1.Unix(1_700_000_001, 0)
	base := func() *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
		}}}
	}
	want := cluster.Fingerprint(base(), manager)
	cases := map[string]struct {
		reason string
		edit   func(*metav1.ObjectMeta)
		same   bool
	}{
		"uid":     {"another life of the name", func(m *metav1.ObjectMeta) { m.UID = "v" }, false},
		"version": {"another API version", func(m *metav1.ObjectMeta) { m.ManagedFields[0].APIVersion = "v2" }, false},
		"time":    {"the same manager applied another value later", func(m *metav1.ObjectMeta) { m.ManagedFields[0].Time = &later }, false},
		"fields":  {"other fields", func(m *metav1.ObjectMeta) { m.ManagedFields[0].FieldsV1.SetRawString(`{}`) }, false},
		"updates": {"an update under the same name is not an apply", func(m *metav1.ObjectMeta) { m.ManagedFields[0].Operation = metav1.ManagedFieldsOperationUpdate }, false},
		"others": {"entries of others", func(m *metav1.ObjectMeta) {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: other, Operation: metav1.ManagedFieldsOperationApply})
		}, true},
		"subresource": {"an entry for a subresource", func(m *metav1.ObjectMeta) {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: &metav1.FieldsV1{}})
		}, true},
		"rest": {"the rest of the metadata", func(m *metav1.ObjectMeta) { m.ResourceVersion, m.Generation = "9", 9 }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := base()
			tc.edit(meta)
			if got := cluster.Fingerprint(meta, manager); (got == want) != tc.same {
				t.Errorf("%s: %q, before %q; want them equal: %t", tc.reason, got, want, tc.same)
			}
		})
	}
}
