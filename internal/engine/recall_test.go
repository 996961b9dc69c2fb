package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// TestHealthIsKnownAfterARestart: what was judged healthy, and is the same version of the object still, is not read.
func TestHealthIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const count = 12
	services := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	files := map[string]string{}
	for i := range count {
		files[fmt.Sprint(i, ".yaml")] = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: s%d}\nspec: {ports: [{port: 80}]}\n", i)
	}
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	touch := func(names int) {
		for i := range names {
			check(t, env.Client.Patch(t.Context(), r.get(services, fmt.Sprint("s", i)),
				client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, names))))
		}
	}
	restart := func(what string, want map[string]int, most int) {
		t.Helper()
		r.start(nil)
		writes := 0
		calls := r.calls(func() {
			r.round()
			r.synced()
			if out := r.round(); !settled(out) || len(out.Waiting) > 0 {
				t.Errorf("%s: %+v", what, out)
			}
			writes = r.records.writes
		})
		if diff := cmp.Diff(want, calls); diff != "" || writes > most {
			t.Errorf("%s: %d writes of the inventory, -want +got:\n%s", what, writes, diff)
		}
	}
	restart("nothing changed", map[string]int{"list": 1}, 0)
	touch(1)
	restart("what changed meanwhile is read", map[string]int{"list": 1, "get": 1}, 0)
	touch(count)
	restart("many that changed are read at once", map[string]int{"list": 2}, 0)

	r.in.Verify = true
	r.round()
	r.in.Verify = false
	r.in.Target.Health = []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "Service", Current: "has(spec.clusterIP)"}}
	restart("another way to judge, which is written down", map[string]int{"list": 2}, 1)
}

// TestMissingIsNotRecalled: a member that is gone after a restart is not healthy because it was.
func TestMissingIsNotRecalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", map[string]string{"s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"})
	r.settle("it is installed", settled)
	check(t, env.Client.Delete(t.Context(), r.get(schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "s")))
	r.in.Spec.Management = modulesv1.ManagementPaused
	r.start(nil)
	r.settle("it is missed", func(out engine.Outcome) bool { return len(out.Drifted) == 1 && !out.Healthy && len(out.Waiting) == 1 })
}
