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

// TestSwap: two installations that swap objects, each with one edit, both come to an end, and the objects stay the same.
func TestSwap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sibling("valkey")
	r.in.Target = r.target("1.0.0", configMapFiles("r", "1", "x", "1"))
	s.in.Target = s.target("1.0.0", configMapFiles("s", "1", "y", "1"))
	r.settle("it is installed", settled)
	s.settle("it is installed", settled)
	x, y := r.get(configMaps, "x").GetUID(), r.get(configMaps, "y").GetUID()
	r.in.Target = r.target("2.0.0", configMapFiles("r", "2", "y", "2"))
	r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "valkey")
	s.in.Target = s.target("2.0.0", configMapFiles("s", "2", "x", "2"))
	s.settle("it has the other one's", settled)
	r.settle("it has the other one's", settled)
	s.round()
	for name, want := range map[string]struct {
		uid   types.UID
		owner string
	}{"x": {x, "valkey"}, "y": {y, "redis"}} {
		live := r.get(configMaps, name)
		if live == nil || live.GetUID() != want.uid || live.GetLabels()[engine.InstallationLabel] != want.owner {
			t.Errorf("%s was %s: %v", name, want.uid, live)
		}
	}
	if mx, my := member(s, "x"), member(r, "y"); mx.Adopted || my.Adopted || len(r.members()) != 2 || len(s.members()) != 2 {
		t.Errorf("members: %v, %v", r.inventory().Data.Members, s.inventory().Data.Members)
	}
}

// TestDroppedObjectsWaitForTheirTurn: what an attempt drops is nobody else's before all else of it is applied, unless the
// attempt waits for others itself: it may be taken back.
func TestDroppedObjectsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("r", "1", "x", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	bad := configMapFiles("r", "2")
	bad["bad.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad, namespace: " + r.namespace + "-missing}\n"
	r.in.Target = r.target("2.0.0", bad)
	r.fails(engine.StageApply, modulesv1.ApplyFailedReason, "missing")
	s.in.Target = s.target("1.0.0", configMapFiles("x", "2"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	r.in.Target = r.target("1.0.0", configMapFiles("r", "1", "x", "1"))
	r.settle("it is taken back", settled)
	if owner := r.get(configMaps, "x").GetLabels()[engine.InstallationLabel]; owner != "redis" {
		t.Errorf("it is %s's", owner)
	}
}

// TestManyOwners: an installation may claim objects of any number of others, all of them with one write.
func TestManyOwners(t *testing.T) {
	t.Parallel()
	const many = 18
	r := newRig(t)
	all := []string{}
	owners := map[string]*rig{}
	for i := range many {
		name := fmt.Sprintf("x%02d", i)
		all = append(all, name, "1")
		owners[name] = r.sibling("owner-" + name)
		owners[name].in.Target = r.target("1.0.0", configMapFiles("own-"+name, "1", name, "1"))
		owners[name].settle("it is installed", settled)
	}
	r.in.Target = r.target("1.0.0", configMapFiles(all...))
	r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "owner-x00")
	if r.records.writes != 2 {
		t.Errorf("%d writes: one begins, and one has all claims", r.records.writes)
	}
	r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "owner-x00")
	if r.records.writes != 2 {
		t.Errorf("%d writes: claims are written once", r.records.writes)
	}
	for name, owner := range owners {
		uid := r.get(configMaps, name).GetUID()
		if m := member(r, name); !m.Claimed || m.UID != string(uid) {
			t.Errorf("member: %+v", m)
		}
		owner.in.Target = r.target("2.0.0", configMapFiles("own-"+name, "1"))
		owner.settle("it is upgraded", settled)
		if live := r.get(configMaps, name); live == nil || live.GetUID() != uid {
			t.Errorf("%s: %v", name, live)
		}
	}
	r.settle("it is installed", settled)
}

// TestLongNames: an installation whose name is longer than a label hands objects over as any other, and leaves them to
// others once it is gone.
func TestLongNames(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Dropped", "Gone"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			long := r.sibling(strings.Repeat("long-name.", 9) + "x")
			long.in.UID = "uid-of-long-in-" + r.namespace
			long.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
			long.settle("it is installed", settled)
			uid := r.get(configMaps, "shared").GetUID()
			r.in.Target = r.target("1.0.0", configMapFiles("shared", "2"))
			r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "take it out of there")
			if how == "Dropped" {
				long.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
				long.settle("it is upgraded", settled)
			} else {
				check(t, r.client.Delete(t.Context(), long.inventory()))
			}
			r.settle("it is taken", settled)
			if live := r.get(configMaps, "shared"); live.GetUID() != uid || live.GetLabels()[engine.InstallationLabel] != "redis" {
				t.Errorf("%v", live)
			}
		})
	}
}

// earlyAndLate are two objects, one of which is applied a stage later.
func earlyAndLate() map[string]string {
	files := configMapFiles("early", "1")
	files["late.yaml"] = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: late}\ntemplate: {spec: {containers: [{name: c, image: i}]}}\n"
	return files
}

// TestDroppedLaterObjectIsClaimed: what waits behind a refused stage is handed over as well, although its owner's attempt,
// which waits for a third one, drops it: its turn may come after the owner's.
func TestDroppedLaterObjectIsClaimed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, o := r.sibling("valkey"), r.sibling("third")
	r.in.Target = r.target("1.0.0", earlyAndLate())
	r.settle("it is installed", settled)
	o.in.Target = o.target("1.0.0", configMapFiles("o", "1", "wished", "1"))
	o.settle("it is installed", settled)
	uid := r.get(podTemplates, "late").GetUID()
	r.in.Target = r.target("2.0.0", configMapFiles("early", "1", "wished", "1"))
	r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "third")
	s.in.Target = s.target("1.0.0", earlyAndLate())
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	o.in.Target = o.target("2.0.0", configMapFiles("o", "1"))
	o.settle("it is handed over", settled)
	r.settle("it is upgraded", settled)
	if live := r.get(podTemplates, "late"); live == nil || live.GetUID() != uid || live.GetLabels()[engine.InstallationLabel] != "valkey" {
		t.Errorf("it was %s: %v", uid, live)
	}
}

// TestLaterClaimFollowsTheObject: what waits behind a refused stage is claimed anew once its owner had to make it anew.
func TestLaterClaimFollowsTheObject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sibling("valkey")
	r.in.Target = r.target("1.0.0", earlyAndLate())
	r.settle("it is installed", settled)
	r.synced()
	s.in.Target = s.target("1.0.0", earlyAndLate())
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	check(t, env.Client.Delete(t.Context(), r.get(podTemplates, "late")))
	r.settle("it is healed", func(engine.Outcome) bool { return r.get(podTemplates, "late") != nil })
	uid := r.get(podTemplates, "late").GetUID()
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if live := r.get(podTemplates, "late"); live == nil || live.GetUID() != uid {
		t.Errorf("it was %s: %v", uid, live)
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

// TestClaimedIsNotCounted: what was claimed and never had is not among what goes, once it is not wanted any more: neither
// in a plan, nor in what prune.maxPercent allows.
func TestClaimedIsNotCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("x", "1", "y", "1", "z", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	few := int32(50)
	s.in.Spec.Prune = &modulesv1.PrunePolicy{MaxPercent: &few}
	before := s.target("1.0.0", configMapFiles("v", "1"))
	s.in.Target = before
	s.settle("it is installed", settled)
	s.in.Target = s.target("2.0.0", configMapFiles("v", "1", "x", "1", "y", "1", "z", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	s.in.Target = before
	plan, err := s.engine.Plan(t.Context(), s.in)
	check(t, err)
	if plan.Delete > 0 {
		t.Errorf("plan: %+v", plan)
	}
	s.settle("it is taken back", settled)
}

// TestARecordDoesNotOutgrowItsMeasure: what a claim adds to a member, and what a deletion adds, are never there together.
func TestARecordDoesNotOutgrowItsMeasure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("shared", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	if members := s.inventory().Data.Members; len(members) != 1 || !members[0].Claimed {
		t.Fatalf("claimed: %+v", members)
	}
	s.start(&mortal{at: 1, after: true}) // Right after it has written that the end has begun.
	s.in.Deleting = true
	_, _ = s.engine.Reconcile(t.Context(), s.in)
	if data := s.inventory().Data; data.Phase != modulesv1.PhaseDeleting || data.Members[0].State != modulesv1.MemberDeleting || data.Members[0].Claimed {
		t.Errorf("phase %s, members %+v", data.Phase, data.Members)
	}
	s.start(nil)
	s.settle("it is gone", done)
	if r.get(configMaps, "shared") == nil {
		t.Error("the claimant removed what it never had")
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
