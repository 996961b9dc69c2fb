package engine_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

var namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// namespaceFile is a Namespace; tier is a label of it.
func namespaceFile(name, tier string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {tier: %q}}\n", name, tier)
}

// byHand creates what the manifest says, as an administrator.
func (r *rig) byHand(manifest string) {
	r.t.Helper()
	object := &unstructured.Unstructured{}
	check(r.t, yaml.Unmarshal([]byte(manifest), &object.Object))
	if object.GetKind() != "Namespace" && object.GetKind() != crds.Kind {
		object.SetNamespace(r.namespace)
	}
	check(r.t, env.Client.Create(r.t.Context(), object, client.FieldOwner("somebody")))
}

// TestAdopted: what was there before stays, with its labels taken off.
func TestAdopted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		// manifest of the object, whose name is the test's namespace and a suffix, or subject.
		manifest func(*rig, string) string
		object   func(*rig) string
		before   bool
		wantLeft bool
	}{
		"ConfigMap": {
			reason: "somebody made it for a purpose of theirs", gvk: configMaps, before: true, wantLeft: true,
			manifest: func(_ *rig, value string) string { return configMap("subject", value) },
		},
		"Namespace": {
			reason: "others' objects may be in a namespace", gvk: namespaces, before: true, wantLeft: true,
			manifest: func(r *rig, value string) string { return namespaceFile(r.namespace+"-x", value) },
			object:   func(r *rig) string { return r.namespace + "-x" },
		},
		"OwnNamespace": {
			reason: "a namespace that came with the release goes with it", gvk: namespaces,
			manifest: func(r *rig, value string) string { return namespaceFile(r.namespace+"-x", value) },
			object:   func(r *rig) string { return r.namespace + "-x" },
		},
		"Claim": {
			reason: "a claim holds data", gvk: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, before: true, wantLeft: true,
			manifest: func(*rig, string) string { return claimOf("any") },
		},
		"Definition": {
			reason: "there may be objects of a kind that was there before", gvk: crds, before: true, wantLeft: true,
			manifest: func(r *rig, _ string) string { return newCRDModule(r).files["crd.yaml"] },
			object:   func(r *rig) string { return "things." + newCRDModule(r).group },
		},
	} {
		for _, how := range []string{"Uninstalled", "Pruned"} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				subject := "subject"
				if tc.object != nil {
					subject = tc.object(r)
				}
				if tc.before {
					r.byHand(tc.manifest(r, "before"))
				}
				r.in.Target = r.target("1.0.0", map[string]string{"subject.yaml": tc.manifest(r, "1"), "a.yaml": configMap("a", "1")})
				r.settle("it is installed", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
				if got := member(r, subject).Adopted; got != tc.before {
					t.Errorf("adopted: %v", got)
				}
				var out engine.Outcome
				if how == "Pruned" {
					r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
					out = r.settle("it is pruned", func(out engine.Outcome) bool { return settled(out) || len(out.Waiting) > 0 })
				} else {
					r.in.Deleting, r.in.Target = true, nil
					out = r.settle("it is gone", func(out engine.Outcome) bool { return out.Done || len(out.Waiting) > 0 })
				}
				left := r.get(tc.gvk, subject)
				if stays := left != nil && left.GetDeletionTimestamp() == nil; stays != tc.wantLeft {
					t.Fatalf("%s: left: %v", tc.reason, stays)
				}
				if tc.wantLeft && (left.GetLabels()[engine.Label] != "" || !noted(out, modulesv1.OrphanedReason, subject)) {
					t.Errorf("%s: labels %v, notes %v", tc.reason, left.GetLabels(), out.Notes)
				}
			})
		}
	}
}

// TestAdoptedDataBlocks: users' data that a release took over is users' data still.
func TestAdoptedDataBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.byHand(configMap("mine", "1"))
	r.in.Target = r.target("1.0.0", configMapFiles("mine", "2"))
	r.settle("it is installed", settled)
	r.in.Target.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}}
	r.settle("it is recorded", func(out engine.Outcome) bool { return len(out.Inventory.Data.Deletion.ManagedResources) == 1 })
	r.in.Deleting, r.in.Target = true, nil
	out := r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, "ConfigMap")
	if len(out.Deletion.BlockedBy) != 1 || r.get(configMaps, "mine").GetDeletionTimestamp() != nil {
		t.Errorf("blocked by %v", out.Deletion.BlockedBy)
	}
}

// TestAdoptedAnew: what was adopted and deleted since, so that healing made it, goes with the installation; what was
// created and made anew by somebody else since does not.
func TestAdoptedAnew(t *testing.T) {
	t.Parallel()
	definition := func(r *rig) *unstructured.Unstructured { return r.get(crds, "things."+newCRDModule(r).group) }
	gone := func(r *rig) func() bool { return func() bool { return definition(r) == nil } }
	for name, tc := range map[string]struct {
		reason   string
		before   bool
		wantLeft bool
	}{
		"Healed":   {reason: "it was adopted, and is this installation's work now", before: true},
		"Replaced": {reason: "it was this installation's work, and is somebody else's now", wantLeft: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			manifest := newCRDModule(r).files["crd.yaml"]
			if tc.before {
				r.byHand(manifest)
			}
			r.in.Target = r.target("1.0.0", map[string]string{"crd.yaml": manifest, "a.yaml": configMap("a", "1")})
			r.settle("it is installed", settled)
			r.synced()
			check(t, env.Client.Delete(t.Context(), definition(r)))
			eventually(t, "it is deleted", gone(r))
			if !tc.before {
				r.byHand(manifest)
			}
			uid := member(r, "things."+newCRDModule(r).group).UID
			r.settle("it is healed", func(engine.Outcome) bool { return member(r, "things."+newCRDModule(r).group).UID != uid })
			r.in.Deleting, r.in.Target = true, nil
			r.settle("it is gone", done)
			if left := definition(r) != nil; left != tc.wantLeft {
				t.Errorf("%s: left: %v", tc.reason, left)
			}
		})
	}
}

// TestCreationIsKnownAfterACrash kills the process at every effect of an installation: whether it or somebody else made
// a Namespace is known all the same, also when another release with other fields follows.
func TestCreationIsKnownAfterACrash(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"Created": false, "Adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []bool{false, true} {
				for at := 1; at <= maxEffects; at++ {
					r := newRig(t)
					space := r.namespace + "-x"
					if before {
						r.byHand(namespaceFile(space, "before"))
					}
					r.in.Target = r.target("1.0.0", map[string]string{"ns.yaml": namespaceFile(space, "1"), "a.yaml": configMap("a", "1")})
					m := &mortal{at: at, after: after}
					r.start(m)
					r.untilDead()
					r.start(nil)
					r.in.Target = r.target("2.0.0", map[string]string{"ns.yaml": namespaceFile(space, "2"), "a.yaml": configMap("a", "2")})
					r.settle("it is installed", settled)
					r.in.Deleting, r.in.Target = true, nil
					out := r.settle("it is gone", func(out engine.Outcome) bool { return out.Done || len(out.Waiting) > 0 })
					if left := r.get(namespaces, space).GetDeletionTimestamp() == nil; left != before {
						t.Errorf("killed at effect %d, after it %v: left %v, told %v", at, after, left, out.Notes)
					}
					r.halt()
					if !m.isDead() {
						break
					}
				}
			}
		})
	}
}

// TestCreationIsHandedOver: who takes over what another installation created deletes it in the end, and who takes over
// what that one had adopted does not.
func TestCreationIsHandedOver(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"Created": false, "Adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			manifest := newCRDModule(r).files["crd.yaml"]
			definition := "things." + newCRDModule(r).group
			if before {
				r.byHand(manifest)
			}
			r.in.Spec.Prune = &modulesv1.PrunePolicy{Enabled: new(false)}
			r.in.Target = r.target("1.0.0", map[string]string{"crd.yaml": manifest, "a.yaml": configMap("a", "1")})
			r.settle("it is installed", settled)
			r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
			r.settle("it is upgraded", settled)
			s := r.sibling("postgres")
			s.in.Target = s.target("1.0.0", map[string]string{"crd.yaml": manifest})
			s.settle("it is taken", settled)
			r.in.Spec.Prune = nil
			r.in.Target = r.target("3.0.0", configMapFiles("a", "3"))
			r.settle("the other one lets go", settled)
			s.in.Deleting, s.in.Target = true, nil
			s.settle("it is gone", done)
			if left := r.get(crds, definition) != nil; left != before {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestAdoptedHome: the installation's own namespace stays, whoever made it.
func TestAdoptedHome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", map[string]string{"ns.yaml": namespaceFile(r.namespace, "1"), "a.yaml": configMap("a", "1")})
	r.settle("it is installed", settled)
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	home := &unstructured.Unstructured{}
	home.SetGroupVersionKind(namespaces)
	check(t, env.Client.Get(t.Context(), types.NamespacedName{Name: r.namespace}, home))
	if home.GetDeletionTimestamp() != nil || home.GetLabels()[engine.Label] != "" {
		t.Errorf("namespace: %v", home)
	}
}
