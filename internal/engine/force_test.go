package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

func secretOnce(value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: subject}\nimmutable: true\nstringData: {key: " + value + "}\n"
}

func statefulSet(service, whenDeleted string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: subject}
spec:
  serviceName: %s
  persistentVolumeClaimRetentionPolicy: {whenDeleted: %s}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, service, whenDeleted)
}

func claimOf(class string) string {
	return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: subject}\n" +
		"spec: {accessModes: [ReadWriteOnce], storageClassName: " + class + ", resources: {requests: {storage: 1Gi}}}\n"
}

// TestForceSparesData: what cannot be changed in place is made anew when that is asked, except where data would go with it.
func TestForceSparesData(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	statefulSets := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	for name, tc := range map[string]struct {
		reason      string
		gvk         schema.GroupVersionKind
		one, two    string
		managed     []modulesv1.ManagedResource
		disown      bool
		wantRefusal string
	}{
		"Secret": {
			reason: "an object that can be brought back is made anew", gvk: secrets, one: secretOnce("one"), two: secretOnce("two"),
		},
		"Managed": {
			reason: "objects of managed resources are users' data", gvk: secrets, one: secretOnce("one"), two: secretOnce("two"),
			managed: []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "Secret"}}}, wantRefusal: "managedResources",
		},
		"Foreign": {
			reason: "what is not provably ours is nobody's to delete", gvk: secrets, one: secretOnce("one"), two: secretOnce("two"),
			disown: true, wantRefusal: "not provably",
		},
		"StatefulSet": {
			reason: "the claims of a StatefulSet outlive it by default", gvk: statefulSets,
			one: statefulSet("one", "Retain"), two: statefulSet("two", "Retain"),
		},
		"StatefulSetWithClaims": {
			reason: "claims that go with their StatefulSet keep it", gvk: statefulSets,
			one: statefulSet("one", "Delete"), two: statefulSet("two", "Retain"), wantRefusal: "whenDeleted",
		},
		"PersistentVolumeClaim": {
			reason: "a claim is never deleted", gvk: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"},
			one: claimOf("one"), two: claimOf("two"), wantRefusal: "what is in a PersistentVolumeClaim",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			target := func(version, manifest string) *engine.Target {
				made := r.target(version, map[string]string{"subject.yaml": manifest})
				made.ManagedResources = tc.managed
				return made
			}
			r.in.Spec.Force = true
			r.in.Target = target("1.0.0", tc.one)
			r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
			before := r.get(tc.gvk, "subject")
			if tc.disown {
				check(t, env.Client.Delete(t.Context(), before))
				before = before.DeepCopy()
				before.SetUID("")
				before.SetResourceVersion("")
				before.SetManagedFields(nil)
				before.SetLabels(nil)
				check(t, env.Client.Create(t.Context(), before))
			}
			r.in.Target = target("2.0.0", tc.two)
			if tc.wantRefusal != "" {
				r.fails(engine.StageApply, modulesv1.ImmutableFieldReason, tc.wantRefusal)
				r.fails(engine.StageApply, modulesv1.ImmutableFieldReason, "spec.force does not delete it")
			} else {
				r.settle("it is made anew", func(out engine.Outcome) bool { return out.Inventory.Data.Current.Version == "2.0.0" })
			}
			after := r.get(tc.gvk, "subject")
			if same := after.GetUID() == before.GetUID() && after.GetDeletionTimestamp() == nil; same != (tc.wantRefusal != "") {
				t.Errorf("%s: uid %s, then %s, deleted %v", tc.reason, before.GetUID(), after.GetUID(), after.GetDeletionTimestamp())
			}
		})
	}
}

// TestForceSparesDefinitions: a CRD is never made anew, for its objects would go with it.
func TestForceSparesDefinitions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	delete(m.files, "thing.yaml")
	r.in.Spec.Force = true
	r.in.Target = r.target("1.0.0", m.files)
	r.settle("it is installed", settled)
	before := r.get(crds, "things."+m.group).GetUID()
	m.files["crd.yaml"] = strings.Replace(m.files["crd.yaml"], "scope: Namespaced", "scope: Cluster", 1)
	r.in.Target = r.target("2.0.0", m.files)
	r.fails(engine.StageApply, modulesv1.ImmutableFieldReason, "what is in a CustomResourceDefinition")
	if after := r.get(crds, "things."+m.group); after.GetUID() != before || after.GetDeletionTimestamp() != nil {
		t.Errorf("uid %s, then %s", before, after.GetUID())
	}
}

// TestTakingIsForOneVersion: an object that somebody had made, and that another installation takes over between the
// two requests in which this one does, is that one's.
func TestTakingIsForOneVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// at is the number of the request before which the other one comes.
		at int64
	}{
		"BeforeTheRead":  {"the label is read, and is another's", 2},
		"BeforeTheForce": {"the version that was read is not there any more", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.sibling("valkey")
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared", "namespace": r.namespace},
				"data": map[string]any{"key": "theirs"},
			}}
			check(t, env.Client.Create(t.Context(), object, client.FieldOwner("somebody")))
			s.in.Target = s.target("1.0.0", configMapFiles("shared", "valkey"))
			r.in.Target = r.target("1.0.0", configMapFiles("shared", "redis"))
			var requests atomic.Int64
			r.onCall = func(verb string) {
				if verb != "discover" && requests.Add(1) == tc.at {
					s.settle("the other one is installed", settled)
				}
			}
			r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "")
			r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "valkey")
			if got := r.get(configMaps, "shared"); got.GetLabels()[engine.InstallationLabel] != "valkey" {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}
