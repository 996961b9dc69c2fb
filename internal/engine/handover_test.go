package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// live reads an object that may have no namespace.
func (r *rig) live(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	r.t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)
	key := types.NamespacedName{Name: name}
	if gvk != namespaces {
		key.Namespace = r.namespace
	}
	if err := env.Client.Get(r.t.Context(), key, found); client.IgnoreNotFound(err) != nil {
		r.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return found
}

// TestMoved: an object that one installation claims while another one has it is handed over with its UID when that one
// drops it or is removed, and nothing of the former owner's stays in it.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gvk      schema.GroupVersionKind
		manifest func(name, value string) string
	}{
		"ConfigMap": {configMaps, configMap},
		"Namespace": {namespaces, namespaceFile},
	} {
		for _, how := range []string{"Dropped", "Uninstalled"} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				subject := r.namespace + "-moved"
				r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": configMap("a", "1"), "s.yaml": tc.manifest(subject, "1")})
				r.settle("it is installed", settled)
				uid := r.live(tc.gvk, subject).GetUID()
				s := r.sibling("valkey")
				s.in.Target = s.target("1.0.0", map[string]string{"s.yaml": tc.manifest(subject, "2")})
				s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, r.namespace+"/redis")

				var out engine.Outcome
				if how == "Dropped" {
					r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
					out = r.settle("it is upgraded", settled)
				} else {
					r.in.Deleting, r.in.Target = true, nil
					out = r.settle("it is gone", done)
				}
				if !noted(out, modulesv1.HandedOverReason, r.namespace+"/valkey") {
					t.Errorf("notes: %v", out.Notes)
				}
				s.settle("it is installed", settled)
				moved := r.live(tc.gvk, subject)
				if moved == nil || moved.GetUID() != uid || moved.GetDeletionTimestamp() != nil || moved.GetLabels()[engine.InstallationLabel] != "valkey" {
					t.Fatalf("moved: %v", moved)
				}
				for _, entry := range moved.GetManagedFields() {
					if entry.Manager == engine.Manager(r.in.UID) {
						t.Error("the former owner still has fields")
					}
				}
				record := s.inventory()
				if m := member(s, subject); m.Claimed || m.Adopted || m.UID != string(uid) {
					t.Errorf("member: %+v", m)
				}
				for label := range record.Labels {
					if strings.HasPrefix(label, engine.ClaimPrefix) {
						t.Errorf("a claim is left: %s", label)
					}
				}
			})
		}
	}
}

// TestClaimToAnEarlierLife: who claims an object that was made anew since, and has not looked, stands in nobody's way.
func TestClaimToAnEarlierLife(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
	r.settle("it is installed", settled)
	claims := func(name string) {
		s := r.sibling(name)
		s.in.Target = s.target("1.0.0", configMapFiles("shared", "2"))
		s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, r.namespace+"/redis")
	}
	claims("zookeeper")
	before := r.get(configMaps, "shared")
	check(t, env.Client.Delete(t.Context(), before))
	testenv.Eventually(t, "it is made anew", func(ctx context.Context) (bool, string) {
		_, err := r.engine.Reconcile(ctx, r.in)
		live := r.get(configMaps, "shared")
		return live != nil && live.GetUID() != before.GetUID(), fmt.Sprint(err)
	})
	uid := r.get(configMaps, "shared").GetUID()
	claims("kafka")
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	out := r.settle("it is upgraded", settled)
	if moved := r.get(configMaps, "shared"); moved == nil || moved.GetUID() != uid || !noted(out, modulesv1.HandedOverReason, r.namespace+"/kafka") {
		t.Errorf("moved %v, told %v", moved, out.Notes)
	}
}

// TestMovedTogether: what is in a Namespace, or of a CRD's kind, moves along with it, although its stage comes after the
// one that is refused; an object that the release has for the first time is not made ahead of its stage.
func TestMovedTogether(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]func(*rig) (container, member string, uid func() types.UID){
		"Definition": func(r *rig) (string, string, func() types.UID) {
			m := newCRDModule(r)
			return m.files["crd.yaml"], m.files["thing.yaml"], func() types.UID { return r.get(m.kind, "own").GetUID() }
		},
		"Namespace": func(r *rig) (string, string, func() types.UID) {
			space := r.namespace + "-moved"
			inside := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: %s}\n", space)
			return namespaceFile(space, "1"), inside, func() types.UID {
				found := &corev1.ConfigMap{}
				check(r.t, env.Client.Get(r.t.Context(), types.NamespacedName{Namespace: space, Name: "own"}, found))
				return found.GetUID()
			}
		},
	} {
		for _, how := range []string{"Dropped", "Uninstalled"} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				container, inside, uid := tc(r)
				r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": configMap("a", "1"), "c.yaml": container, "m.yaml": inside})
				r.settle("it is installed", settled)
				before := uid()
				s := r.sibling("valkey")
				s.in.Target = s.target("1.0.0", map[string]string{"n.yaml": configMap("new", "1"), "c.yaml": container, "m.yaml": inside})
				s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, r.namespace+"/redis")
				if !member(s, "own").Claimed || r.get(configMaps, "new") != nil || uid() != before {
					t.Fatalf("member: %+v", member(s, "own"))
				}
				if made := s.calls(func() { s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "") }); made["apply"] != 1 {
					t.Errorf("what is claimed is asked for again: %v", made)
				}
				if how == "Dropped" {
					r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
					r.settle("it is upgraded", settled)
				} else {
					r.in.Deleting, r.in.Target = true, nil
					r.settle("it is gone", done)
				}
				s.settle("it is installed", settled)
				if m := member(s, "own"); uid() != before || m.Claimed || m.Adopted || m.UID != string(before) {
					t.Errorf("member: %+v, was %s", m, before)
				}
			})
		}
	}
}

// TestClaimThatIsTakenBack: who claimed an object, and does not want it any more, gets nothing.
func TestClaimThatIsTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("v", "1", "shared", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	s.in.Target = s.target("2.0.0", configMapFiles("v", "1"))
	s.settle("it is installed", settled)
	if r.get(configMaps, "shared") == nil {
		t.Fatal("the claimant removed what it never had")
	}
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.settle("it is upgraded", settled)
	if left := r.get(configMaps, "shared"); left != nil {
		t.Errorf("nobody wants it, and it is left: %v", left.GetLabels())
	}
}

// TestClaimNeedsTheRight: an installation whose account may not write the object has no claim to it.
func TestClaimNeedsTheRight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	s.in.Identity.Namespace, s.in.Identity.ServiceAccount = r.namespace, "powerless"
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	s.fails(engine.StageApply, modulesv1.ForbiddenReason, "powerless")
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.settle("it is upgraded", settled)
	if r.get(configMaps, "shared") != nil {
		t.Error("it is left")
	}
}

// TestLetGoInSpiteOfAClaim: a claim is to what another installation has. What that one let go of was there before, to
// whoever claimed it as well.
func TestLetGoInSpiteOfAClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("shared", "1"))
	r.settle("it is installed", settled)
	uid := r.get(configMaps, "shared").GetUID()
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	r.in.Deleting, r.in.Target, r.in.Spec.Deletion = true, nil, &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	r.settle("it is let go of", done)

	s.in.Spec.Adopt = modulesv1.AdoptNever
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "spec.adopt is Never")
	s.in.Spec.Adopt = modulesv1.AdoptIfUnowned
	s.settle("it is taken over", settled)
	if m := member(s, "shared"); !m.Adopted || m.UID != string(uid) {
		t.Errorf("member: %+v", m)
	}
	s.in.Deleting, s.in.Target = true, nil
	s.settle("it is gone", done)
	if left := r.get(configMaps, "shared"); left == nil || left.GetUID() != uid {
		t.Error("what was let go of was deleted")
	}
}

// TestClaimOfTheDead: nothing is handed over to an installation whose Inventory is on its way out, for nobody would ever
// remove it.
func TestClaimOfTheDead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	claiming := s.inventory()
	claiming.Finalizers = []string{modulesv1.InstallationFinalizer}
	check(t, r.client.Update(t.Context(), claiming))
	check(t, r.client.Delete(t.Context(), claiming))

	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if left := r.get(configMaps, "shared"); left != nil {
		t.Errorf("it is left with the labels %v", left.GetLabels())
	}
}

// TestClaimDuringARemoval: a claim that comes between the count of users' data and the removal is heard.
func TestClaimDuringARemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("shared", "1"))
	r.in.Target.ManagedResources = []modulesv1.ManagedResource{
		{GroupVersionKind: modulesv1.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}, Scope: modulesv1.ManagedInNamespace},
	}
	r.settle("it is installed", settled)
	uid := r.get(configMaps, "shared").GetUID()
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	var claimed sync.Once
	r.mu.Lock()
	r.onCall = func(verb string) {
		if verb == "list" {
			claimed.Do(func() { s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis") })
		}
	}
	r.mu.Unlock()
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	s.settle("it is taken", settled)
	if moved := r.get(configMaps, "shared"); moved.GetUID() != uid {
		t.Error("it was deleted, and made anew")
	}
}
