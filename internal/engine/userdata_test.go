package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// TestDataNamedLikeAMember: that a member of another kind has the same name makes users' data no member.
func TestDataNamedLikeAMember(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	check(t, env.Client.Create(t.Context(), m.thing(r.namespace, "a")))
	r.in.Deleting, r.in.Target = true, nil
	r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/a")
	if r.get(crds, "things."+m.group) == nil || r.get(m.kind, "a") == nil {
		t.Error("users' data went")
	}
}

// TestOwnObjectsGoWithTheirCRD: objects of the release itself are no users' data when a release without them and
// without their CRD follows.
func TestOwnObjectsGoWithTheirCRD(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.in.Spec.Prune = &modulesv1.PrunePolicy{MaxPercent: new(int32(100))}
	r.settle("the CRD is gone", func(out engine.Outcome) bool { return settled(out) && r.get(crds, "things."+m.group) == nil })
}

// TestDataThatComesWhilePruning: users' data that was not there when the removal began keeps its CRD as well.
func TestDataThatComesWhilePruning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	m.files["thing.yaml"] = strings.Replace(m.files["thing.yaml"], "{name: own}", "{name: own, finalizers: [example.com/slow]}", 1)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	r.in.Spec.Prune = &modulesv1.PrunePolicy{MaxPercent: new(int32(100))}
	r.settle("the removal has begun", func(engine.Outcome) bool { return r.get(m.kind, "own").GetDeletionTimestamp() != nil })

	check(t, env.Client.Create(t.Context(), m.thing(r.namespace, "mine")))
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	check(t, env.Client.Patch(t.Context(), r.get(m.kind, "own"), free))
	testenv.Eventually(t, "the CRD is kept", func(ctx context.Context) (bool, string) {
		_, err := r.engine.Reconcile(ctx, r.in)
		if r.get(crds, "things."+m.group).GetDeletionTimestamp() != nil {
			t.Fatal("the CRD goes, and users' data with it")
		}
		return err != nil && strings.Contains(err.Error(), r.namespace+"/mine"), fmt.Sprint(err)
	})
}

// TestDataThatComesWhileDeleting: users' data that comes after the question for it, and before the CRD's turn, blocks.
func TestDataThatComesWhileDeleting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.settle("it is installed", settled)
	var once sync.Once
	r.onCall = func(verb string) {
		if verb == "delete" {
			once.Do(func() { check(t, env.Client.Create(t.Context(), m.thing(r.namespace, "late"))) })
		}
	}
	r.in.Deleting, r.in.Target = true, nil
	testenv.Eventually(t, "the CRD is kept", func(ctx context.Context) (bool, string) {
		_, err := r.engine.Reconcile(ctx, r.in)
		if r.get(crds, "things."+m.group).GetDeletionTimestamp() != nil {
			t.Fatal("the CRD goes, and users' data with it")
		}
		return err != nil && strings.Contains(err.Error(), r.namespace+"/late"), fmt.Sprint(err)
	})
}

// TestVersionThatIsServedNoMore: what was applied in a version that the API server has ceased to serve can be removed.
func TestVersionThatIsServedNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	crd := m.files["crd.yaml"]
	at := strings.Index(crd, "  - name: v1")
	second := strings.Replace(strings.Replace(crd[at:], "name: v1", "name: v2", 1), "storage: true", "storage: false", 1)
	m.files["crd.yaml"] = crd + second
	r.in.Target = m.target(r, "1.0.0")
	r.in.Target.ManagedResources, r.in.Target.DefaultConfig = nil, nil
	r.settle("it is installed", settled)
	unserve := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`))
	check(t, env.Client.Patch(t.Context(), r.get(crds, "things."+m.group), unserve))
	r.in.Deleting, r.in.Target = true, nil
	r.settle("it is gone", done)
	if r.get(crds, "things."+m.group) != nil || len(r.present()) > 0 {
		t.Error("something is left")
	}
}

// TestUninstallSparesUnlistedData: objects of a CRD that comes with the release block a deletion as well when the
// template does not list their kind.
func TestUninstallSparesUnlistedData(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = r.target("1.0.0", m.files)
	r.settle("it is installed", settled)
	mine := m.thing(r.namespace, "mine")
	check(t, env.Client.Create(t.Context(), mine))
	r.in.Deleting, r.in.Target = true, nil
	out := r.fails(engine.StageDelete, modulesv1.DeletionBlockedReason, r.namespace+"/mine")
	want := []modulesv1.DeletionBlocker{{Group: m.group, Kind: "Thing", Count: 1, Examples: []string{r.namespace + "/mine"}}}
	if diff := cmp.Diff(want, out.Deletion.BlockedBy); diff != "" || len(r.present()) != 1 || r.get(m.kind, "own") == nil {
		t.Errorf("blocked by (-want +got):\n%s, left %v", diff, r.present())
	}
	check(t, env.Client.Delete(t.Context(), mine))
	r.settle("it is gone", done)
	if r.get(crds, "things."+m.group) != nil {
		t.Error("the definition is left")
	}
}

// TestTooManyManagedKinds: no kind of users' data is left out of the record: what does not fit is told, and nothing
// is applied.
func TestTooManyManagedKinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kinds := func(prefix string, count int) []modulesv1.ManagedResource {
		var made []modulesv1.ManagedResource
		for i := range count {
			made = append(made, modulesv1.ManagedResource{GroupVersionKind: modulesv1.GroupVersionKind{
				Group: "example.com", Version: "v1", Kind: fmt.Sprint(prefix, i),
			}})
		}
		return made
	}
	no := false
	r.in.Spec.Prune = &modulesv1.PrunePolicy{Enabled: &no}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.in.Target.ManagedResources = kinds("One", 64)
	r.settle("it is installed", settled)
	r.in.Target = r.target("2.0.0", configMapFiles("b", "1"))
	r.in.Target.ManagedResources = kinds("Two", 64)
	r.settle("two full lists fit", settled)
	if got := len(r.inventory().Data.Deletion.ManagedResources); got != 128 {
		t.Errorf("%d kinds are on record", got)
	}
	r.in.Target = r.target("3.0.0", configMapFiles("c", "1"))
	r.in.Target.ManagedResources = kinds("Three", 1)
	_, err := r.engine.Reconcile(t.Context(), r.in)
	if found := failure.Of(err); err == nil || found.Disposition != failure.Stalls || found.Reason != modulesv1.InventoryTooLargeReason ||
		!strings.Contains(err.Error(), "managedResources") || !strings.Contains(err.Error(), "128") {
		t.Errorf("round: %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, r.present()); diff != "" {
		t.Error(diff)
	}
}

// TestHashesAreSalted: the same installation, made twice, has other hashes: no secret can be found by trying. A restart
// changes none of them.
func TestHashesAreSalted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := r.target("1.0.0", map[string]string{"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pin: \"1234\"}\n"})
	var hashes [][]string
	for range 2 {
		r.in.Deleting, r.in.Target = false, target
		r.settle("it is installed", settled)
		data := r.inventory().Data
		r.start(nil)
		var out engine.Outcome
		if calls := r.calls(func() { out = r.round() }); calls["apply"] > 0 || out.Inventory.Data.RenderDigest != data.RenderDigest {
			t.Errorf("after a restart: %+v", out)
		}
		plan, err := r.engine.Plan(t.Context(), r.in)
		check(t, err)
		hashes = append(hashes, []string{data.Members[0].RenderHash, data.RenderDigest, plan.Digest, data.Salt})
		r.in.Deleting, r.in.Target = true, nil
		r.settle("it is gone", done)
	}
	for i, first := range hashes[0] {
		if first == hashes[1][i] || first == "" {
			t.Errorf("hash %d is %q twice", i, first)
		}
	}
}
