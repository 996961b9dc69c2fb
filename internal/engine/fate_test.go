package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// TestDataThatTookAMembersName: a user's object that was made in a member's place while nobody looked is users' data,
// and keeps its kind from an upgrade as well as from an uninstallation.
func TestDataThatTookAMembersName(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*rig){
		"Pruned": func(r *rig) {
			r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
			r.fails(engine.StagePrune, modulesv1.PruneBlockedReason, r.namespace+"/own")
		},
		"Uninstalled": func(r *rig) {
			r.in.Deleting, r.in.Target = true, nil
			r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/own")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			m := newCRDModule(r)
			r.in.Target = m.target(r, "1.0.0")
			r.settle("it is installed", settled)
			r.in.Spec.Management = modulesv1.ManagementPaused
			r.round()
			check(t, env.Client.Delete(t.Context(), r.get(m.kind, "own")))
			eventually(t, "it is gone", func() bool { return r.get(m.kind, "own") == nil })
			check(t, env.Client.Create(t.Context(), m.thing(r.namespace, "own")))
			if name == "Pruned" {
				// What is installed is not healed any more, and the release that follows has nothing of it.
				r.in.Spec.Management = ""
			}
			leave(r)
			if crd := r.get(crds, "things."+m.group); crd.GetDeletionTimestamp() != nil || r.get(m.kind, "own") == nil {
				t.Error("users' data goes")
			}
		})
	}
}

// TestUnrecordedMembersAreNoData: what was applied and not written down before a crash goes with the installation, as
// its own fields tell.
func TestUnrecordedMembersAreNoData(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	record := r.inventory()
	for i := range record.Data.Members {
		if record.Data.Members[i].Name == "own" {
			record.Data.Members[i].UID = ""
		}
	}
	check(t, r.client.Update(t.Context(), record))
	r.start(nil)
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if r.get(crds, "things."+m.group) != nil {
		t.Error("the definition is left")
	}
}

// TestKeptObjects: whoever annotates an object keeps it, whatever is done to it, and however fresh the news of that is.
func TestKeptObjects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ annotation, value string }{
		"Ours": {cluster.KeepAnnotation, "disabled"},
		"Flux": {"kustomize.toolkit.fluxcd.io/prune", "Disabled"},
		"Helm": {"helm.sh/resource-policy", "keep"},
	} {
		for _, how := range []string{"Pruned", "Uninstalled", "Restarted"} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
				r.settle("it is installed", settled)
				r.synced()
				keep := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, tc.annotation, tc.value)
				check(t, env.Client.Patch(t.Context(), r.get(configMaps, "b"), client.RawPatch(types.MergePatchType, []byte(keep))))
				var out engine.Outcome
				switch how {
				case "Pruned":
					r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
					out = r.settle("it is upgraded", settled)
					if got := r.inventory().Data.LetGo; got != 1 {
						t.Errorf("%d objects were let go of", got)
					}
				case "Restarted":
					r.start(nil)
					fallthrough
				default:
					r.in.Deleting, r.in.Target = true, nil
					out = r.settle("it is gone", done)
				}
				kept := r.get(configMaps, "b")
				if kept == nil || len(kept.GetLabels()) > 0 || !noted(out, modulesv1.OrphanedReason, tc.annotation) {
					t.Errorf("kept %v, told %v", kept, out.Notes)
				}
			})
		}
	}
}

// TestKeptObjectsAreNotMadeAnew: an annotation keeps an object from spec.force as well.
func TestKeptObjectsAreNotMadeAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Spec.Force = true
	r.in.Target = r.target("1.0.0", map[string]string{"s.yaml": secretOnce("one")})
	r.settle("it is installed", settled)
	secret := r.get(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "subject")
	keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`))
	check(t, env.Client.Patch(t.Context(), secret, keep))
	r.in.Target = r.target("2.0.0", map[string]string{"s.yaml": secretOnce("two")})
	r.fails(engine.StageApply, modulesv1.ImmutableFieldReason, "helm.sh/resource-policy")
}

// TestKeptObjectIsData: an object of a CRD in the release that somebody keeps would go with the CRD, which therefore
// stays, and all of the release with it.
func TestKeptObjectIsData(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"modules.sluice.dev/prune":"disabled"}}}`))
	check(t, env.Client.Patch(t.Context(), r.get(m.kind, "own"), keep))
	r.in.Deleting, r.in.Target = true, nil
	r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/own")
	if len(r.present()) != 1 || r.get(crds, "things."+m.group) == nil {
		t.Error("something went all the same")
	}
}

// TestKeptDefaultConfig: whoever annotates the default configuration keeps it as any other object, and with it its CRD.
func TestKeptDefaultConfig(t *testing.T) {
	t.Parallel()
	keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"modules.sluice.dev/prune":"disabled"}}}`))
	t.Run("Alone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
		r.in.Target.DefaultConfig = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "default"},
		}}
		r.settle("it is installed", settled)
		check(t, env.Client.Patch(t.Context(), r.get(configMaps, "default"), keep))
		r.in.Deleting, r.in.Target = true, nil
		told := false
		out := r.settle("it is gone", func(out engine.Outcome) bool {
			told = told || noted(out, modulesv1.OrphanedReason, "modules.sluice.dev/prune: disabled")
			return done(out)
		})
		if r.get(configMaps, "default") == nil || !told || !noted(out, modulesv1.UninstalledReason, "apart from 1") {
			t.Errorf("kept %v, told %v", r.get(configMaps, "default"), out.Notes)
		}
	})
	t.Run("WithItsDefinition", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		m := newCRDModule(r)
		r.in.Target = m.target(r, "1.0.0")
		r.settle("it is installed", settled)
		check(t, env.Client.Patch(t.Context(), r.get(m.kind, "default"), keep))
		r.in.Deleting, r.in.Target = true, nil
		r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/default")
		if r.get(m.kind, "own") == nil || r.get(crds, "things."+m.group) == nil {
			t.Error("something went all the same")
		}
	})
}

// TestVolumesStay: claims and volumes are data, also those that the release made itself.
func TestVolumesStay(t *testing.T) {
	t.Parallel()
	claims := schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	for _, how := range []string{"Pruned", "Uninstalled"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			volume := r.namespace + "-v"
			files := map[string]string{
				"a.yaml": configMap("a", "1"), "claim.yaml": claimOf("any"),
				"volume.yaml": "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + volume + "}\n" +
					"spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /none}}\n",
			}
			r.in.Target = r.target("1.0.0", files)
			r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
			check(t, phase(r.get(claims, "subject"), "Bound"))
			check(t, phase(r.get(schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, volume), "Bound"))
			r.settle("it is installed", settled)
			out := r.givesUp(how)
			for gvk, name := range map[schema.GroupVersionKind]string{claims: "subject", {Version: "v1", Kind: "PersistentVolume"}: volume} {
				left := r.get(gvk, name)
				if left == nil || left.GetDeletionTimestamp() != nil || len(left.GetLabels()) > 0 || !noted(out, modulesv1.OrphanedReason, name) {
					t.Errorf("%s: %v, told %v", gvk.Kind, left, out.Notes)
				}
			}
		})
	}
}

// givesUp prunes all but the ConfigMap a, or uninstalls.
func (r *rig) givesUp(how string) engine.Outcome {
	r.t.Helper()
	if how == "Pruned" {
		r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
		return r.settle("it is upgraded", settled)
	}
	r.in.Deleting, r.in.Target = true, nil
	return r.settle("it is gone", done)
}

// TestStatefulSetsWhoseClaimsGoAlongStay: volumes are data, so that a StatefulSet that takes its claims along is let go of,
// and any other goes.
func TestStatefulSetsWhoseClaimsGoAlongStay(t *testing.T) {
	t.Parallel()
	statefulSets := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	for _, whenDeleted := range []string{"Delete", "Retain"} {
		for _, how := range []string{"Pruned", "Uninstalled"} {
			t.Run(whenDeleted+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				set := strings.Replace(statefulSet("one", whenDeleted), "spec:\n", "spec:\n  replicas: 0\n", 1)
				r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": configMap("a", "1"), "set.yaml": set})
				r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
				status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1,"replicas":0}}`))
				check(t, env.Client.Status().Patch(t.Context(), r.get(statefulSets, "subject"), status))
				r.settle("it is installed", settled)
				r.synced()
				out := r.givesUp(how)
				left := r.get(statefulSets, "subject")
				if whenDeleted == "Retain" {
					if left != nil && left.GetDeletionTimestamp() == nil {
						t.Error("its claims outlive it, and it stays")
					}
					return
				}
				if left == nil || left.GetDeletionTimestamp() != nil || len(left.GetLabels()) > 0 || !noted(out, modulesv1.OrphanedReason, "whenDeleted") {
					t.Errorf("left %v, told %v", left, out.Notes)
				}
			})
		}
	}
}

// phase sets what a controller of Kubernetes would set.
func phase(object *unstructured.Unstructured, phase string) error {
	status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	return env.Client.Status().Patch(context.Background(), object, status)
}

// TestNamespacesWithForeignObjectsStay: a Namespace that the release made goes only if nothing is in it but what
// Kubernetes puts there.
func TestNamespacesWithForeignObjectsStay(t *testing.T) {
	t.Parallel()
	const gone = "00000000-0000-0000-0000-000000000001"
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: subject%s}\nspec: {containers: [{name: c, image: c}]}\n"
	for name, tc := range map[string]struct {
		reason string
		// manifests of what is in the Namespace; SPACE is its name.
		manifests []string
		wantLeft  bool
	}{
		"Empty": {reason: "nothing is in it"},
		"Kubernetes": {reason: "Kubernetes puts these there by itself", manifests: []string{
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-root-ca.crt}\n",
			"apiVersion: v1\nkind: Event\nmetadata: {name: e}\ninvolvedObject: {kind: Pod, namespace: SPACE, name: p}\n",
			"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: leader}\nspec: {holderIdentity: x}\n",
		}},
		"Garbage": {reason: "its controller is gone, and it follows", manifests: []string{
			fmt.Sprintf(pod, ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: "+gone+", controller: true}]"),
		}},
		"OwnedByTheCluster": {reason: "what controls it is not in the Namespace, and may live on", wantLeft: true, manifests: []string{
			fmt.Sprintf(pod, ", ownerReferences: [{apiVersion: v1, kind: Node, name: x, uid: "+gone+", controller: true}]"),
		}},
		"Users":  {reason: "a user's object", wantLeft: true, manifests: []string{configMap("mine", "1")}},
		"Claims": {reason: "a StatefulSet's claims outlive it", wantLeft: true, manifests: []string{claimOf("any")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			space := r.namespace + "-x"
			r.in.Target = r.target("1.0.0", map[string]string{
				"ns.yaml": namespaceFile(space, "1"), "a.yaml": configMap("a", "1"),
				"in.yaml": strings.Replace(configMap("in", "1"), "name: in", "name: in, namespace: "+space, 1),
			})
			r.settle("it is installed", settled)
			for _, manifest := range tc.manifests {
				object := &unstructured.Unstructured{}
				check(t, yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "SPACE", space)), &object.Object))
				object.SetNamespace(space)
				check(t, env.Client.Create(t.Context(), object))
			}
			r.in.Deleting, r.in.Target = true, nil
			out := r.settle("it is gone", func(out engine.Outcome) bool { return out.Done || len(out.Waiting) > 0 })
			left := r.get(namespaces, space)
			if stays := left.GetDeletionTimestamp() == nil; stays != tc.wantLeft {
				t.Fatalf("%s: left %v, told %v", tc.reason, stays, out.Notes)
			}
			if tc.wantLeft && (left.GetLabels()[engine.Label] != "" || !noted(out, modulesv1.OrphanedReason, "is in it")) {
				t.Errorf("%s: labels %v, told %v", tc.reason, left.GetLabels(), out.Notes)
			}
		})
	}
}

// TestNamespaceOfMembersIsNotPruned: a release that drops the manifest of a Namespace, and not what is in it, loses
// nothing.
func TestNamespaceOfMembersIsNotPruned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	space := r.namespace + "-x"
	files := map[string]string{
		"ns.yaml": namespaceFile(space, "1"),
		"in.yaml": strings.Replace(configMap("in", "1"), "name: in", "name: in, namespace: "+space, 1),
	}
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	delete(files, "ns.yaml")
	r.in.Target = r.target("2.0.0", files)
	out := r.settle("it is upgraded", settled)
	if r.get(namespaces, space).GetDeletionTimestamp() != nil || !noted(out, modulesv1.OrphanedReason, "ConfigMap/"+space+"/in is in it") {
		t.Errorf("the Namespace goes, told %v", out.Notes)
	}
}

// TestUnknownContentsKeepANamespace: who may not list all that can be in a Namespace does not delete it.
func TestUnknownContentsKeepANamespace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	space := r.namespace + "-x"
	r.grantEverywhere("namespaces", "configmaps")
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", map[string]string{"ns.yaml": namespaceFile(space, "1"), "a.yaml": configMap("a", "1")})
	r.settle("it is installed", settled)
	r.in.Deleting, r.in.Target = true, nil
	out := r.settle("it is gone", done)
	if r.get(namespaces, space).GetDeletionTimestamp() != nil || !noted(out, modulesv1.OrphanedReason, "may not list") {
		t.Errorf("the Namespace goes, told %v", out.Notes)
	}
}

// TestHiccupsKeepNoNamespace: that an API server is busy for a moment says nothing of what is in a Namespace, and a slow
// one is not asked for longer than a round takes: it is asked again.
func TestHiccupsKeepNoNamespace(t *testing.T) {
	t.Parallel()
	for name, hiccup := range map[string]func(*rig) (*http.Response, error){
		"Busy": func(*rig) (*http.Response, error) { return nil, errors.New("connection reset") },
		"Slow": func(r *rig) (*http.Response, error) {
			r.clock.SetTime(r.clock.Now().Add(time.Hour))
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			space := r.namespace + "-x"
			var trouble atomic.Bool
			var lists atomic.Int32
			r.wrap = func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					if request.Method == http.MethodGet && strings.Contains(request.URL.Path, "/namespaces/"+space+"/") && trouble.Load() {
						lists.Add(1)
						if answer, err := hiccup(r); answer != nil || err != nil {
							return answer, err
						}
					}
					return next.RoundTrip(request)
				})
			}
			r.start(nil)
			r.in.Target = r.target("1.0.0", map[string]string{"ns.yaml": namespaceFile(space, "1"), "a.yaml": configMap("a", "1")})
			r.settle("it is installed", settled)
			r.in.Deleting, r.in.Target = true, nil
			trouble.Store(true)
			eventually(t, "the Namespace's turn has come", func() bool {
				_, err := r.engine.Reconcile(t.Context(), r.in)
				return lists.Load() > 0 && err != nil
			})
			if r.get(namespaces, space).GetLabels()[engine.Label] == "" || name == "Slow" && lists.Load() > 16 {
				t.Errorf("it was let go of, after %d lists", lists.Load())
			}
			trouble.Store(false)
			eventually(t, "it goes", func() bool {
				_, err := r.engine.Reconcile(t.Context(), r.in)
				return err == nil && r.get(namespaces, space).GetDeletionTimestamp() != nil
			})
		})
	}
}

// TestCountLongerThanARound: the count of users' data goes on where the round before has left it, and ends.
func TestCountLongerThanARound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.HasPrefix(request.URL.Path, "/apis/slow.example.com") {
				r.clock.SetTime(r.clock.Now().Add(5 * time.Second))
			}
			return next.RoundTrip(request)
		})
	}
	r.start(nil)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	for i := range 40 {
		r.in.Target.ManagedResources = append(r.in.Target.ManagedResources, modulesv1.ManagedResource{
			GroupVersionKind: modulesv1.GroupVersionKind{Group: "slow.example.com", Version: "v1", Kind: fmt.Sprint("Thing", i)},
		})
	}
	r.settle("it is installed", settled)
	r.in.Deleting, r.in.Target = true, nil
	for range 40 {
		if out, _ := r.engine.Reconcile(t.Context(), r.in); out.Done {
			return
		}
	}
	t.Error("it never ends")
}

// TestOneObjectInTwoGroups: an object that the API server has under two groups, and that a release moves from one to the
// other, is one object, and no leftover.
func TestOneObjectInTwoGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	event := func(version, rest string) map[string]string {
		return map[string]string{"a.yaml": configMap("a", "1"), "event.yaml": "apiVersion: " + version + "\nkind: Event\nmetadata: {name: subject}\n" +
			"eventTime: 2026-01-02T03:04:05.000000Z\naction: Tried\nreason: Because\ntype: Normal\nreportingInstance: x\n" + rest}
	}
	about := fmt.Sprintf("{kind: ConfigMap, apiVersion: v1, namespace: %s, name: a}", r.namespace)
	events := schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	r.in.Target = r.target("1.0.0", event("v1", "reportingComponent: example.com/x\ninvolvedObject: "+about+"\n"))
	r.settle("it is installed", settled)
	uid := r.get(events, "subject").GetUID()
	r.in.Target = r.target("2.0.0", event("events.k8s.io/v1", "reportingController: example.com/x\nregarding: "+about+"\n"))
	r.settle("it is upgraded", settled)
	if live := r.get(events, "subject"); live == nil || live.GetUID() != uid || live.GetLabels()[engine.Label] == "" || len(r.members()) != 2 {
		t.Errorf("was %s, is %v, members %v", uid, live, r.members())
	}
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if r.get(events, "subject") != nil {
		t.Error("it is left")
	}
}

// TestPrunedNamesWhatWent: the event has names, and not only a number.
func TestPrunedNamesWhatWent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files := configMapFiles("a", "1")
	for i := range 7 {
		files[fmt.Sprintf("x%d.yaml", i)] = configMap(fmt.Sprintf("x%d", i), "1")
	}
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	out := r.settle("it is upgraded", settled)
	if !noted(out, modulesv1.PrunedReason, "x4 and 2 more") {
		t.Errorf("told %v", out.Notes)
	}
}

// TestDataInOneNamespace: of a managed resource with the scope Namespace, others' objects elsewhere keep nobody.
func TestDataInOneNamespace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	elsewhere := env.NewNamespace(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target.ManagedResources = []modulesv1.ManagedResource{{
		GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}, Scope: modulesv1.ManagedInNamespace,
	}}
	r.settle("it is installed", settled)
	data := func(namespace string) *corev1.PodTemplate {
		return &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}}
	}
	check(t, env.Client.Create(t.Context(), data(elsewhere)))
	check(t, env.Client.Create(t.Context(), data(r.namespace)))
	r.in.Deleting, r.in.Target = true, nil
	out := r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/mine")
	if len(out.Deletion.BlockedBy) != 1 || out.Deletion.BlockedBy[0].Count != 1 {
		t.Errorf("blocked by %v", out.Deletion.BlockedBy)
	}
	check(t, env.Client.Delete(t.Context(), data(r.namespace)))
	r.settle("it is gone", done)
}

// roundTripper is the way to the API server.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestMoreBlockersThanStatusHolds: kinds beyond the bound of status.deletion are counted.
func TestMoreBlockersThanStatusHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.HasPrefix(request.URL.Path, "/apis/down.example.com") {
				return nil, errors.New("its server is down")
			}
			return next.RoundTrip(request)
		})
	}
	r.start(nil)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	for i := range modulesv1.MaxBlockers + 1 {
		r.in.Target.ManagedResources = append(r.in.Target.ManagedResources, modulesv1.ManagedResource{
			GroupVersionKind: modulesv1.GroupVersionKind{Group: "down.example.com", Version: "v1", Kind: fmt.Sprint("Thing", i)},
		})
	}
	r.settle("it is installed", settled)
	r.in.Deleting, r.in.Target = true, nil
	out := r.fails(engine.StageDelete, modulesv1.DeletionUnknownReason, "down")
	if len(out.Deletion.Unknown) != modulesv1.MaxBlockers || out.Deletion.Unlisted != 1 {
		t.Errorf("%d kinds are listed, and %d more counted", len(out.Deletion.Unknown), out.Deletion.Unlisted)
	}
}

// TestDeletionEndsWhenRightsAreGone: an installation whose rights went in the same breath lets go of what is left, once
// it has waited for them; before that it says what is missing.
func TestDeletionEndsWhenRightsAreGone(t *testing.T) {
	t.Parallel()
	for name, managed := range map[string][]modulesv1.ManagedResource{
		"Members": nil,
		"Data":    {{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}, Scope: modulesv1.ManagedInNamespace}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.grant(rule{"", "configmaps", "*"}, rule{"", "podtemplates", "list"})
			r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
			files := map[string]string{}
			for i := range 7 {
				files[fmt.Sprint(i, ".yaml")] = configMap(fmt.Sprint("cm", i), "1")
			}
			r.in.Target = r.target("1.0.0", files)
			r.in.Target.ManagedResources = managed
			r.settle("it is installed", settled)
			for gvk, name := range map[schema.GroupVersionKind]string{
				{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}: "deployer",
				{Version: "v1", Kind: "ServiceAccount"}:                                  "deployer",
			} {
				check(t, env.Client.Delete(t.Context(), r.get(gvk, name)))
			}
			r.in.Deleting, r.in.Target = true, nil
			waits := func(reason string) {
				t.Helper()
				eventually(t, "it says what is missing", func() bool {
					_, err := r.engine.Reconcile(t.Context(), r.in)
					return err != nil && failure.Of(err).Reason == reason && strings.Contains(err.Error(), "is let go of")
				})
			}
			reason := modulesv1.ForbiddenReason
			if managed != nil {
				reason = modulesv1.DeletionUnknownReason
			}
			waits(reason)
			r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultTimeout - time.Second))
			waits(reason)
			r.clock.SetTime(r.clock.Now().Add(time.Second))
			out := r.settle("it is over", done)
			if len(r.present()) != 7 || !noted(out, modulesv1.OrphanedReason, "cm4 and 2 more") {
				t.Errorf("left %v, told %v", r.present(), out.Notes)
			}
		})
	}
}

// TestRightsThatAreMissingForAMoment: however long a deletion has been blocked by users' data, rights that are missing
// for a moment are not taken for gone, and each time counts anew.
func TestRightsThatAreMissingForAMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grant(rule{"", "configmaps", "*"}, rule{"", "secrets", "list"})
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target.ManagedResources = []modulesv1.ManagedResource{
		{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "Secret"}, Scope: modulesv1.ManagedInNamespace},
	}
	r.settle("it is installed", settled)
	r.byHand("apiVersion: v1\nkind: Secret\nmetadata: {name: mine}\n")
	r.in.Deleting, r.in.Target = true, nil
	waits := func(reason string) {
		t.Helper()
		eventually(t, "it waits: "+reason, func() bool {
			out, err := r.engine.Reconcile(t.Context(), r.in)
			if out.Done {
				t.Fatalf("everything was let go of: %v", out.Notes)
			}
			return err != nil && failure.Of(err).Reason == reason
		})
	}
	binding := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	for range 2 {
		waits(modulesv1.DeletionBlockedReason)
		r.clock.SetTime(r.clock.Now().Add(24 * time.Hour))
		check(t, env.Client.Delete(t.Context(), r.get(binding, "deployer")))
		waits(modulesv1.DeletionUnknownReason)
		r.grant(rule{"", "configmaps", "*"}, rule{"", "secrets", "list"})
	}
	waits(modulesv1.DeletionBlockedReason)
	check(t, env.Client.Delete(t.Context(), r.get(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "mine")))
	r.settle("it is gone", done)
	if left := r.present(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// grantEverywhere lets the deployer do everything with these resources of the core group, in the whole cluster.
func (r *rig) grantEverywhere(resources ...string) {
	r.t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.namespace},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: r.namespace, Name: "deployer"}},
	}
	check(r.t, env.Client.Create(r.t.Context(), role))
	check(r.t, env.Client.Create(r.t.Context(), binding))
}
