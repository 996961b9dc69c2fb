package cli

import (
	"testing"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/plan"
)

// TestAPlanThatIsBlockedIsNoCalmOne: also where what is in the way of an object has it kept.
func TestAPlanThatIsBlockedIsNoCalmOne(t *testing.T) {
	t.Parallel()
	kept := plan.Object{Action: engine.ActionKeep, Reason: "it is not to be pruned"}
	blocked := kept
	blocked.Blocked = "somebody uses it"
	for want, told := range map[bool]planned{
		false: {Objects: []plan.Object{kept}},
		true:  {Objects: []plan.Object{kept, blocked}},
	} {
		if told.changes() != want {
			t.Errorf("%+v: it is told that something is to be done: %t", told.Objects, !want)
		}
	}
}
