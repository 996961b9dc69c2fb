package cli

import "testing"

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
