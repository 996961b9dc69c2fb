package cli

import (
	"context"
	"testing"
)

// Plans that fail cost as much as those that do not.
func TestFailingPlansOfAnImpactAreFew(t *testing.T) {
	t.Parallel()
	a := &assessor{planner: newPlanner(&base{session: &session{}}), after: &catalogues{}}
	a.files, a.evidence = &manifests{}, "fails at once"
	for range 3 * maxPlans {
		a.told.Installations = append(a.told.Installations, impactedOne{To: "2.0.0", Consequence: upgradesNow})
	}
	a.planAll(t.Context())
	if len(a.lacking) != maxPlans {
		t.Errorf("%d plans were tried, and %d may be", len(a.lacking), maxPlans)
	}
}

// What was interrupted is not told as if it were all.
func TestInterruptedPlansOfAnImpactAreLacking(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a := &assessor{planner: newPlanner(&base{session: &session{}}), after: &catalogues{}}
	a.files, a.evidence = &manifests{}, "fails at once"
	a.told.Installations = []impactedOne{{To: "2.0.0", Consequence: upgradesNow}, {To: "2.0.0", Consequence: upgradesNow}}
	a.planAll(ctx)
	if len(a.lacking) != 1 {
		t.Errorf("%d errors tell of the interruption, and one is to", len(a.lacking))
	}
}
