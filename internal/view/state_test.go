package view_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/view"
)

// read is an object as it stands in YAML.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

const (
	minute = "2026-01-01T00:01:00Z"
	ready  = "{type: Ready, status: 'True', reason: Installed, message: It runs, observedGeneration: 2, lastTransitionTime: '" + minute + "'}"
)

// TestStates: the first that holds counts, and what it is told with is that state's own.
func TestStates(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	gone := "metadata: {deletionTimestamp: '" + minute + "'}\n"
	second := "metadata: {generation: 2}\n"
	failed := func(status, reason string) string {
		return second + "status: {conditions: [{type: Ready, status: '" + status + "', reason: " + reason + ", message: So it is, lastTransitionTime: '" + minute + "'}]}"
	}
	for name, tc := range map[string]struct {
		reason, object string
		want           view.Fact
	}{
		"Blocked": {
			"somebody has to do something before it can go", gone + "status: {conditions: [{type: Ready, status: 'False', reason: DeletionBlocked, message: Data}]}",
			view.Fact{State: view.Blocked, Since: at, Reason: "DeletionBlocked", Message: "Data"},
		},
		"Deleting":    {"it goes by itself", gone + "spec: {suspend: true}", view.Fact{State: view.Deleting, Since: at}},
		"Suspended":   {"whatever its status says", "spec: {suspend: true}\nstatus: {conditions: [" + ready + "]}", view.Fact{State: view.Suspended, Reason: "Installed", Message: "It runs"}},
		"Disabled":    {"generators have an annotation for it", "kind: ArtifactGenerator\nmetadata: {annotations: {source.extensions.fluxcd.io/reconcile: Disabled}}", view.Fact{State: view.Suspended}},
		"Paused":      {"its objects are left alone", "spec: {management: Paused}", view.Fact{State: view.Paused}},
		"New":         {"nobody has looked", "metadata: {creationTimestamp: '" + minute + "'}", view.Fact{State: view.New, Since: at}},
		"Registry":    {"nobody has to look at a registry", "kind: HelmRepository\nspec: {type: oci}", view.Fact{State: view.Ready}},
		"External":    {"others need not say more than what there is", "kind: ExternalArtifact\nstatus: {artifact: {revision: a}}", view.Fact{State: view.Ready}},
		"ExternalNew": {"and until then there is nothing", "kind: ExternalArtifact", view.Fact{State: view.New}},
		"Halted": {
			"it was begun, and is not worked on before its plan is approved",
			"status: {attempted: {template: foo-2.0.0, version: 2.0.0}, desired: {template: foo-2.0.0, version: 2.0.0}, pending: {reason: AwaitingApproval, message: Approve}, conditions: [{type: Ready, status: Unknown, reason: Progressing, message: It goes on}]}",
			view.Fact{State: view.Held, Reason: "AwaitingApproval", Message: "Approve"},
		},
		"Begun": {
			"another one is held than is worked on",
			"status: {attempted: {template: foo-2.0.0, version: 2.0.0}, desired: {template: foo-3.0.0, version: 3.0.0}, pending: {reason: AwaitingApproval, message: Approve}, conditions: [{type: Ready, status: Unknown, reason: Progressing, message: It goes on}]}",
			view.Fact{State: view.Progressing, Reason: "Progressing", Message: "It goes on"},
		},
		"Stalled": {
			"only an edit helps", "status: {conditions: [{type: Ready, status: 'False', reason: A, message: b}, {type: Stalled, status: 'True', reason: Range, message: Odd, lastTransitionTime: '" + minute + "'}]}",
			view.Fact{State: view.Stalled, Since: at, Reason: "Range", Message: "Odd"},
		},
		"Waiting":     {"another object comes first", failed("False", "DependencyNotReady"), view.Fact{State: view.Waiting, Since: at, Reason: "DependencyNotReady", Message: "So it is"}},
		"WaitingOn":   {"that is no failure", failed("Unknown", "ArtifactNotReady"), view.Fact{State: view.Waiting, Since: at, Reason: "ArtifactNotReady", Message: "So it is"}},
		"Failed":      {"it is not ready", failed("False", "Failed"), view.Fact{State: view.Failed, Since: at, Reason: "Failed", Message: "So it is"}},
		"Progressing": {"it is being worked on", failed("Unknown", "Progressing"), view.Fact{State: view.Progressing, Since: at, Reason: "Progressing", Message: "So it is"}},
		"Odd":         {"a status that does not exist is no answer", failed("Perhaps", "Odd"), view.Fact{State: view.Progressing, Since: at, Reason: "Odd", Message: "So it is"}},
		"Reconciling": {
			"it is ready, and worked on all the same", second + "status: {conditions: [" + ready + ", {type: Reconciling, status: 'True', reason: Fetching, message: More, lastTransitionTime: '" + minute + "'}]}",
			view.Fact{State: view.Progressing, Since: at, Reason: "Fetching", Message: "More"},
		},
		"Edited": {"it was ready before the edit", "metadata: {generation: 3}\nstatus: {conditions: [" + ready + "]}", view.Fact{State: view.Progressing, Message: "The last edit has not been looked at yet"}},
		"Held": {
			"it is ready, and waits with a change", second + "status: {pending: {reason: AwaitingApproval, message: Say yes}, conditions: [" + ready + "]}",
			view.Fact{State: view.Held, Reason: "AwaitingApproval", Message: "Say yes"},
		},
		"Ready":       {"all is well", second + "status: {conditions: [" + ready + "]}", view.Fact{State: view.Ready, Since: at, Reason: "Installed", Message: "It runs"}},
		"OwnWord":     {"a condition of before the edit stays one, whatever else has seen it", "metadata: {generation: 3}\nstatus: {observedGeneration: 3, conditions: [" + ready + "]}", view.Fact{State: view.Progressing, Message: "The last edit has not been looked at yet"}},
		"Wordless":    {"one that does not say is as new as the status", "metadata: {generation: 3}\nstatus: {observedGeneration: 3, conditions: [{type: Ready, status: 'True', reason: Installed}]}", view.Fact{State: view.Ready, Reason: "Installed"}},
		"Behind":      {"and may be as old", "metadata: {generation: 3}\nstatus: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', reason: Installed}]}", view.Fact{State: view.Progressing, Message: "The last edit has not been looked at yet"}},
		"NoStatus":    {"what is no status is none", "status: text", view.Fact{State: view.New}},
		"NoList":      {"what are no conditions are none", "status: {conditions: {type: Ready}}", view.Fact{State: view.New}},
		"NoCondition": {"what is no condition is none", "status: {conditions: [1, null, {type: Ready, status: 1}]}", view.Fact{State: view.Progressing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tc.object + "\napiVersion: v1\n"
			if !slices.Contains([]string{"Disabled", "Registry", "External", "ExternalNew"}, name) {
				text += "kind: Any\n"
			}
			obj := read(t, text)
			if diff := cmp.Diff(tc.want, view.Of(obj)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if (tc.want.State == view.Ready || tc.want.State == view.Held) && name != "Halted" && !view.IsObserved(obj) {
				t.Errorf("%s: it is %s, and whoever waits for that would wait on", tc.reason, tc.want.State)
			}
		})
	}
}

// FuzzOf: whatever an object says, it is in one of the states.
func FuzzOf(f *testing.F) {
	f.Add(`{"kind":"A","apiVersion":"v1","metadata":{"generation":2},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	f.Add(`{"kind":"A","apiVersion":"v1","status":{"conditions":[{"type":"Ready","lastTransitionTime":"x"},3]},"spec":{"suspend":"yes"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		if fact := view.Of(obj); !slices.Contains(view.States(), fact.State) {
			t.Errorf("state %q", fact.State)
		}
	})
}
