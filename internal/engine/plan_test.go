package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
)

// TestPlanNamesOnlyWhatGoes: what a release drops and is let go of, because it is data, was there before, or is kept by
// somebody, is nothing that a plan deletes. A restart makes no other plan.
func TestPlanNamesOnlyWhatGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.byHand(configMap("adopted", "1"))
	files := configMapFiles("a", "1", "adopted", "1", "kept", "1", "plain", "1")
	files["claim.yaml"] = claimOf("any")
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is applied", func(out engine.Outcome) bool { return out.Inventory.Data.Current != nil })
	check(t, env.Client.Patch(t.Context(), r.get(configMaps, "kept"),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"modules.sluice.dev/prune":"disabled"}}}`))))
	r.settle("the watch has seen which is kept", func(engine.Outcome) bool {
		meta, _ := r.watcher.State(r.in.Key(), cluster.Ref{GVK: configMaps, Namespace: r.namespace, Name: "kept"})
		return meta != nil && meta.Kept
	})

	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	digests := map[string]bool{}
	for _, when := range []string{"with watches", "after a restart"} {
		plan, err := r.engine.Plan(t.Context(), r.in)
		check(t, err)
		want := []modulesv1.PlannedObject{{Change: modulesv1.PlannedDelete, Kind: "ConfigMap", Namespace: r.namespace, Name: "plain"}}
		if diff := cmp.Diff(want, plan.Objects); diff != "" || plan.Delete != 1 {
			t.Errorf("%s: %d would go (-want +got):\n%s", when, plan.Delete, diff)
		}
		digests[plan.Digest] = true
		r.start(nil)
	}
	if len(digests) != 1 {
		t.Errorf("the same plan has the digests %v", digests)
	}

	r.in.Spec.Adopt = modulesv1.AdoptAlways
	plan, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if plan.Delete != 2 || plan.Objects[0].Name != "adopted" {
		t.Errorf("what was taken over for good would go as well: %+v", plan)
	}
}

// TestPlanLetsGoOfWhatIsIgnored: what the release says is not to be applied is let go of, and no deletion of a plan.
func TestPlanLetsGoOfWhatIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "ignored", "1"))
	r.settle("it is installed", settled)
	files := configMapFiles("a", "1")
	files["ignored.yaml"] = annotatedMap("ignored", "2", engine.SSAAnnotation+": Ignore")
	r.in.Target = r.target("2.0.0", files)
	plan, err := r.engine.Plan(t.Context(), r.in)
	check(t, err)
	if plan.Delete != 0 || len(plan.Objects) != 0 {
		t.Errorf("plan: %+v", plan)
	}
	r.settle("it is upgraded", settled)
	if r.get(configMaps, "ignored") == nil {
		t.Error("what is ignored was deleted")
	}
}
