package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// A variable that nothing uses is most often a slip of the pen: it is told in each round, rendered or not.
func TestUnusedVariablesAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Spec.Config = &modulesv1.InstallationConfig{Substitute: map[string]string{"used": "1", "typo": "2"}}
	r.in.Variables = map[string]string{"used": "1", "typo": "2", "others": "3"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "${used}"))
	r.settle("installed", settled)
	renders := r.rendered()
	for range 2 {
		out, err := r.engine.Reconcile(t.Context(), r.in)
		check(t, err)
		if diff := cmp.Diff([]string{"typo"}, out.Unused); diff != "" {
			t.Errorf("of its own variables, without those of substituteFrom: -want +got:\n%s", diff)
		}
	}
	if made := r.rendered() - renders; made != 0 {
		t.Errorf("%d renders to find that out", made)
	}
}
