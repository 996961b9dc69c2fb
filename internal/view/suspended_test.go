package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/view"
)

// TestSuspendedBy: as much as is noted, with the status where nothing is.
func TestSuspendedBy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason, notes string
		want          view.Fact
	}{
		"All":     {"who, why, when", "{sluice.dev/suspended-by: jane, sluice.dev/suspended-reason: a move, sluice.dev/suspended-at: '" + minute + "'}", view.Fact{Since: at, Message: "Suspended by jane: a move"}},
		"Who":     {"no reason was given", "{sluice.dev/suspended-by: jane}", view.Fact{Message: "Suspended by jane"}},
		"Why":     {"the API server did not tell who", "{sluice.dev/suspended-reason: a move}", view.Fact{Message: "Suspended: a move"}},
		"Odd":     {"anybody may write notes", "{sluice.dev/suspended-at: yesterday}", view.Fact{Message: "It runs"}},
		"Nothing": {"it was suspended in another way", "{}", view.Fact{Message: "It runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := read(t, "apiVersion: v1\nkind: Any\nmetadata: {annotations: "+tc.notes+"}\nspec: {suspend: true}\nstatus: {conditions: ["+ready+"]}\n")
			tc.want.State, tc.want.Reason = view.Suspended, "Installed"
			if diff := cmp.Diff(tc.want, view.Of(obj)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNotesAreOfSuspendedObjects: those of an object that goes on are left over.
func TestNotesAreOfSuspendedObjects(t *testing.T) {
	t.Parallel()
	obj := read(t, "apiVersion: v1\nkind: Any\nmetadata: {annotations: {sluice.dev/suspended-by: jane}}\nstatus: {conditions: ["+ready+"]}\n")
	if got := view.Of(obj); got.State != view.Ready || got.Message != "It runs" {
		t.Errorf("%+v", got)
	}
}

// TestOfWhichSpec: what was said of an older spec is not said of this one.
func TestOfWhichSpec(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, object string
		observed, is   bool
	}{
		"This":    {"the condition is of this spec", "metadata: {generation: 2}\nstatus: {conditions: [" + ready + "]}", true, true},
		"Older":   {"it is of another one", "metadata: {generation: 3}\nstatus: {conditions: [" + ready + "]}", false, false},
		"Status":  {"the condition's own word counts", "metadata: {generation: 3}\nstatus: {observedGeneration: 3, conditions: [" + ready + "]}", false, false},
		"False":   {"it is said, and is not so", "metadata: {generation: 2}\nstatus: {observedGeneration: 2, conditions: [{type: Ready, status: 'False'}]}", true, false},
		"Silent":  {"the status says of which", "metadata: {generation: 3}\nstatus: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}", false, false},
		"Foreign": {"nobody says of which", "metadata: {generation: 3}\nstatus: {conditions: [{type: Ready, status: 'True'}]}", true, true},
		"Nothing": {"nobody has looked", "metadata: {generation: 1}", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := read(t, tc.object+"\napiVersion: v1\nkind: Any\n")
			if observed, is := view.IsObserved(obj), view.IsTrue(obj, "Ready"); observed != tc.observed || is != tc.is {
				t.Errorf("%s: observed %t, true %t", tc.reason, observed, is)
			}
		})
	}
}

// TestWork: how the work stands does not depend on whether it is to go on.
func TestWork(t *testing.T) {
	t.Parallel()
	for _, object := range []string{"spec: {suspend: true}", "spec: {management: Paused}", "metadata: {deletionTimestamp: '" + minute + "'}"} {
		obj := read(t, object+"\nstatus: {conditions: ["+ready+"]}\napiVersion: v1\nkind: Any\n")
		if got := view.Work(obj); got.State != view.Ready || view.Of(obj).State == view.Ready {
			t.Errorf("%s: %+v", object, got)
		}
	}
}
