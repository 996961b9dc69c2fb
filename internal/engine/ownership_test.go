package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// fails does one round that must fail, at the stage and with the reason.
func (r *rig) fails(stage failure.Stage, reason, text string) engine.Outcome {
	r.t.Helper()
	out, err := r.engine.Reconcile(r.t.Context(), r.in)
	staged, ok := errors.AsType[*failure.StageError](err)
	if !ok || staged.Stage != stage || failure.Of(err).Reason != reason || !strings.Contains(err.Error(), text) {
		r.t.Fatalf("round: %v (%+v), not %s %s %q", err, failure.Of(err), stage, reason, text)
	}
	return out
}

func noted(out engine.Outcome, reason, text string) bool {
	for _, note := range out.Notes {
		if note.Reason == reason && strings.Contains(note.Message, text) {
			return true
		}
	}
	return false
}

// TestForeignFieldsAreTaken: an object that somebody else made is taken over, and they are named.
func TestForeignFieldsAreTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": r.namespace},
		"data": map[string]any{"key": "theirs", "other": "kept"},
	}}
	check(t, env.Client.Create(t.Context(), object, client.FieldOwner("somebody")))
	r.in.Target = r.target("1.0.0", configMapFiles("a", "ours"))
	out := r.settle("it is installed", settled)
	if !noted(out, modulesv1.OwnershipTakenReason, "somebody") {
		t.Errorf("notes: %v", out.Notes)
	}
	want := map[string]any{"key": "ours", "other": "kept"}
	if diff := cmp.Diff(want, r.get(configMaps, "a").Object["data"]); diff != "" {
		t.Error(diff)
	}
}

// TestMemberOfAnother: what another installation wants is not taken; once that does not want it any more, it is, and
// nobody deletes it meanwhile.
func TestMemberOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	no := false
	r.in.Spec.Prune = &modulesv1.PrunePolicy{Enabled: &no}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
	r.settle("it is installed", settled)
	uid := r.get(configMaps, "shared").GetUID()

	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("v", "1", "shared", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, r.namespace+"/redis")
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, r.namespace+"/redis")

	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.settle("it is upgraded", settled)
	out := s.settle("it is taken", settled)
	if !noted(out, modulesv1.OwnershipTakenReason, "redis") {
		t.Errorf("notes: %v", out.Notes)
	}
	if taken := member(s, "shared"); taken.Claimed || taken.Adopted {
		t.Errorf("taken: %+v", taken)
	}

	// The one that had it lets go of it, by pruning.
	r.in.Spec.Prune = nil
	r.in.Target = r.target("3.0.0", configMapFiles("a", "3"))
	r.settle("it is upgraded again", settled)
	if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
		t.Error(diff)
	}
	object := r.get(configMaps, "shared")
	if object == nil || object.GetUID() != uid || object.GetLabels()[engine.InstallationLabel] != "valkey" {
		t.Fatalf("shared: %v", object)
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == engine.Manager(r.in.UID) {
			t.Error("the former owner still has fields")
		}
	}
	if diff := cmp.Diff(map[string]any{"key": "1"}, r.get(configMaps, "shared").Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func member(r *rig, name string) modulesv1.Member {
	r.t.Helper()
	for _, m := range r.inventory().Data.Members {
		if m.Name == name {
			return m
		}
	}
	r.t.Fatalf("%s is no member", name)
	return modulesv1.Member{}
}

// TestGoneOwner: a member of an installation whose inventory is gone can be taken.
func TestGoneOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("shared", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	s.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "redis")
	check(t, r.client.Delete(t.Context(), r.inventory()))
	s.settle("it is taken", settled)
}

// TestMadeInAnEarlierLife: what a former installation of the same name made is not left behind by the one that follows
// it, and what that one had adopted is.
func TestMadeInAnEarlierLife(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.byHand(configMap("adopted", "0"))
	files := configMapFiles("made", "1", "adopted", "1")
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	check(t, r.client.Delete(t.Context(), r.inventory()))
	r.in.UID = "another-in-" + r.namespace
	r.settle("the next one is installed", settled)
	if member(r, "made").Adopted || !member(r, "adopted").Adopted {
		t.Errorf("members: %+v", r.inventory().Data.Members)
	}
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if r.get(configMaps, "made") != nil || r.get(configMaps, "adopted") == nil {
		t.Error("what was made is left, or what was adopted is gone")
	}
}

// TestAnotherApplySet: what carries the label of another tool is left alone.
func TestAnotherApplySet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": r.namespace, "labels": map[string]any{engine.Label: "applyset-of-kubectl"}},
	}}
	check(t, env.Client.Create(t.Context(), object, client.FieldOwner("kubectl")))
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "kubectl")
	r.in.Deleting = true
	r.settle("it is gone", done)
	if r.get(configMaps, "a") == nil {
		t.Error("somebody else's object was deleted")
	}
}

// TestEditedLabel: a label that somebody edits on a member is drift, and healed.
func TestEditedLabel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("it is installed", settled)
	r.synced()
	patch := []byte(`{"metadata":{"labels":{"` + engine.Label + `":"mine"}}}`)
	check(t, env.Client.Patch(t.Context(), r.get(configMaps, "a"), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("editor")))
	r.settle("it is healed", func(out engine.Outcome) bool { return healed(out) == 1 })
	if got := r.get(configMaps, "a").GetLabels()[engine.Label]; got != engine.InstallationID("redis", r.namespace) {
		t.Errorf("label: %s", got)
	}
}

// TestImmutable: what cannot be changed in place is told, and made anew only when that is asked.
func TestImmutable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secret := func(value string) map[string]string {
		return map[string]string{"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nimmutable: true\nstringData: {key: " + value + "}\n"}
	}
	r.in.Target = r.target("1.0.0", secret("one"))
	r.settle("it is installed", settled)
	before := member(r, "s").UID
	r.in.Target = r.target("2.0.0", secret("two"))
	r.fails(engine.StageApply, modulesv1.ImmutableFieldReason, "Secret")
	r.fails(engine.StageApply, modulesv1.ImmutableFieldReason, "Secret")
	r.in.Spec.Force = true
	r.settle("it is made anew", settled)
	if after := member(r, "s").UID; after == before {
		t.Error("it is the same object")
	}
}

// TestFight: somebody who changes a member back each time is told, and the healing gets rarer.
func TestFight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("it is installed", settled)
	r.synced()
	contested := false
	object := r.get(configMaps, "a")
	for i := 0; i < 20 && !contested; i++ {
		patch := []byte(`{"data":{"key":"` + strings.Repeat("x", i+1) + `"}}`)
		check(t, env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("rival")))
		out := r.settle("it is healed or left", func(out engine.Outcome) bool { return healed(out) == 1 || len(out.Contested) > 0 })
		contested = len(out.Contested) > 0 && healed(out) == 0
		if contested && out.Again == 0 {
			t.Error("nobody comes back to it")
		}
	}
	if !contested {
		t.Fatal("nobody noticed the fight")
	}
	// The pause is told whether or not the watch knows the last change by then, which has to be seen before its end.
	ref := cluster.Ref{GVK: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	testenv.Eventually(t, "the last change is seen", func(context.Context) (bool, string) {
		meta, known := r.watcher.State(r.in.Key(), ref)
		return known && meta != nil && meta.ResourceVersion == object.GetResourceVersion(), ""
	})
	r.round()
	r.clock.SetTime(r.clock.Now().Add(11 * time.Minute))
	r.settle("it is healed when its time has come", func(out engine.Outcome) bool { return healed(out) == 1 })
	if out := r.round(); len(out.Contested) != 1 || out.Again == 0 || !strings.Contains(out.Contested[0].Message, `"rival"`) {
		t.Errorf("it is over as soon as it is healed: %+v", out)
	}
	r.clock.SetTime(r.clock.Now().Add(11 * time.Minute))
	if out := r.round(); len(out.Contested) > 0 {
		t.Errorf("it is contested after a pause in peace: %v", out.Contested)
	}
}
