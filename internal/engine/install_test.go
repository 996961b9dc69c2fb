package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// TestCalls: what it costs to install, to look, to change and to heal.
func TestCalls(t *testing.T) {
	t.Parallel()
	const count = 300
	r := newRig(t)
	files := func(changed string) map[string]string {
		all := map[string]string{}
		for i := range count {
			all[fmt.Sprintf("%03d.yaml", i)] = configMap(fmt.Sprintf("cm-%03d", i), "same")
		}
		all["007.yaml"] = configMap("cm-007", changed)
		return all
	}
	r.in.Target = r.target("1.0.0", files("one"))
	expect := func(what string, want map[string]int, bookkeeping int, work func()) {
		t.Helper()
		writes := r.records.writes
		if diff := cmp.Diff(want, r.calls(work)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if got := r.records.writes - writes; got > bookkeeping {
			t.Errorf("%s: %d writes of the inventory, more than %d", what, got, bookkeeping)
		} else {
			t.Logf("%s: %d writes of the inventory", what, got)
		}
	}
	var out engine.Outcome
	expect("first install", map[string]int{"apply": count, "list": 1}, 6, func() {
		out = r.round()
		r.synced()
	})
	if !settled(out) || len(r.present()) != count {
		t.Fatalf("installed %d, settled %v, healthy %v", len(r.present()), out.Settled, out.Healthy)
	}
	renders := r.renders
	expect("nothing changed", map[string]int{}, 0, func() { r.round() })
	if r.renders != renders {
		t.Error("nothing changed, and it was rendered all the same")
	}
	began := time.Now()
	for range 100 {
		r.round()
	}
	t.Logf("nothing changed: %v a round, with a read of the inventory from the API server", time.Since(began)/100)

	r.in.Target = r.target("1.0.1", files("two"))
	expect("one of 300 changed", map[string]int{"apply": 1}, 6, func() { r.round() })

	expect("drift", map[string]int{"apply": 2}, 1, func() {
		object := r.get(configMaps, "cm-100")
		check(t, env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"drift"}}`))))
		out = r.settle("drift is healed", func(out engine.Outcome) bool { return healed(out) > 0 })
	})
	if healed(out) != 1 || len(out.Notes) == 0 {
		t.Errorf("healed %d, told %v", healed(out), out.Notes)
	}
	if value := r.get(configMaps, "cm-100").Object["data"]; !cmp.Equal(value, map[string]any{"key": "same"}) {
		t.Errorf("healed to %v", value)
	}
	expect("a deleted member", map[string]int{"apply": 1}, 1, func() {
		check(t, env.Client.Delete(t.Context(), r.get(configMaps, "cm-200")))
		r.settle("it is created again", func(out engine.Outcome) bool { return healed(out) > 0 })
	})
	r.synced()
	r.start(nil)
	expect("after a restart", map[string]int{"list": 1}, 0, func() {
		r.round()
		r.synced()
		r.round()
	})
	expect("a full verification", map[string]int{"apply": count}, 0, func() {
		r.in.Verify = true
		out = r.round()
		r.in.Verify = false
	})
	if healed(out) != 0 {
		t.Errorf("a verification healed %d of what had not drifted", healed(out))
	}
	r.clock.SetTime(r.clock.Now().Add(24 * time.Hour))
	expect("the daily verification", map[string]int{"apply": count}, 0, func() { r.round() })
	expect("and once only", map[string]int{}, 0, func() { r.round() })
	r.synced()
	// The one read is of the namespace: whether it is going anyway.
	r.in.Deleting, r.in.Target = true, nil
	expect("removal", map[string]int{"delete": count, "get": 1}, 2, func() { out = r.round() })
	if !out.Done || len(r.present()) > 0 {
		t.Errorf("removed: %+v, left %v", out, r.present())
	}
}

// TestRemovalBehindTheWatch: what changed since the watch saw it is looked at before it is removed.
func TestRemovalBehindTheWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("it is installed", settled)
	r.synced()
	var once sync.Once
	r.onCall = func(verb string) {
		if verb == "delete" {
			once.Do(func() {
				for name, patch := range map[string]string{"a": `{"data":{"other":"x"}}`, "b": `{"metadata":{"labels":null}}`} {
					check(t, env.Client.Patch(t.Context(), r.get(configMaps, name), client.RawPatch(types.MergePatchType, []byte(patch))))
				}
			})
		}
	}
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if diff := cmp.Diff([]string{"b"}, r.present()); diff != "" {
		t.Errorf("what lost its label since is nobody's to delete:\n%s", diff)
	}
}

// TestInstallAndUpgrade: what an inventory says, what goes, and what history remains.
func TestInstallAndUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Choice = &modulesv1.CatalogChoice{Requested: modulesv1.CatalogAuto, Module: "redis", Catalog: modulesv1.CatalogLocal, Namespace: r.namespace}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	out := r.settle("it is installed", settled)
	if out.Inventory.Data.Current.Version != "1.0.0" || out.Inventory.Data.Current.HealthyAt == nil {
		t.Errorf("current: %+v", out.Inventory.Data.Current)
	}
	first := r.get(configMaps, "a")
	if got := first.GetLabels()[engine.Label]; got != engine.InstallationID("redis", r.namespace) {
		t.Errorf("label: %s", got)
	}
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1", "c", "1"))
	calls := r.calls(func() { out = r.settle("it is upgraded", settled) })
	if calls["apply"] != 1 || calls["delete"] != 1 {
		t.Errorf("upgraded by %v", calls)
	}
	if diff := cmp.Diff([]string{"a", "c"}, r.present()); diff != "" {
		t.Error(diff)
	}
	data := r.inventory().Data
	if diff := cmp.Diff([]string{"a", "c"}, r.members()); diff != "" {
		t.Error(diff)
	}
	if data.Previous.Version != "1.0.0" || len(data.History) != 2 || data.Choice.Namespace != r.namespace || data.Phase != modulesv1.PhaseInstalled {
		t.Errorf("record: %+v", data)
	}
	if got := r.get(configMaps, "a"); got.GetResourceVersion() != first.GetResourceVersion() {
		t.Error("what did not change was written")
	}
	// Another channel leads to the same release: one write, and nothing else.
	again := *r.in.Target
	again.Release.Channel = "fast"
	r.in.Target = &again
	writes := r.records.writes
	if calls := r.calls(func() { out = r.round() }); len(calls) > 0 || r.records.writes-writes != 1 || out.Inventory.Data.Current.Channel != "fast" {
		t.Errorf("calls %v, writes %d, channel %q", calls, r.records.writes-writes, out.Inventory.Data.Current.Channel)
	}
}

// TestPruneIsOptional: leftovers stay when the spec has it so, in the inventory as well, and go when it changes its mind.
func TestPruneIsOptional(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	no := false
	r.in.Spec.Prune = &modulesv1.PrunePolicy{Enabled: &no}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("a", "2"))
	r.settle("it is upgraded", settled)
	if diff := cmp.Diff([]string{"a", "b"}, r.members()); diff != "" {
		t.Error(diff)
	}
	r.in.Spec.Prune = nil
	r.settle("they go", func(out engine.Outcome) bool { return out.Settled && len(out.Inventory.Data.Members) == 1 })
	if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
		t.Error(diff)
	}
	r.in.Spec.Prune = &modulesv1.PrunePolicy{Enabled: &no}
	r.in.Target = r.target("3.0.0", configMapFiles("c", "1"))
	r.settle("it is upgraded again", settled)
	r.in.Deleting = true
	r.settle("it is gone", done)
	if names := r.present(); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	if r.inventory() != nil {
		t.Error("the inventory is left")
	}
}

// eventually waits for something that is not a round.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testenv.Eventually(t, what, func(context.Context) (bool, string) { return holds(), "" })
}

// TestInventoryHoldsSoMuch: what an Inventory could not hold is refused before anything is applied, by number and by
// size, and what is installed stays.
func TestInventoryHoldsSoMuch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Current = r.in.Target
	r.settle("it is installed", settled)
	many := func(count, length int) map[string]string {
		var all strings.Builder
		for i := range count {
			fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%0*d}\n", length-1, i)
		}
		return map[string]string{"all.yaml": all.String()}
	}
	for _, release := range []struct {
		version, says string
		files         map[string]string
	}{
		{"2.0.0", "7501 objects together, and data.members of the Inventory holds 7500: split", many(modulesv1.MaxMembers, 6)},
		{"3.0.0", "data.members of the Inventory, which holds 1500000: split", many(4000, 250)},
	} {
		r.in.Target = r.target(release.version, release.files)
		if calls := r.calls(func() { r.fails(engine.StageApply, modulesv1.InventoryTooLargeReason, release.says) }); len(calls) > 0 {
			t.Errorf("%s: it was asked for %v", release.version, calls)
		}
		if diff := cmp.Diff([]string{"a"}, r.members()); diff != "" {
			t.Error(diff)
		}
	}
	r.synced()
	check(t, env.Client.Delete(t.Context(), r.get(configMaps, "a")))
	testenv.Eventually(t, "what is installed is healed", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		return healed(out) == 1 && failure.Of(err) != nil && failure.Of(err).Reason == modulesv1.InventoryTooLargeReason, fmt.Sprint(healed(out), err)
	})
}
