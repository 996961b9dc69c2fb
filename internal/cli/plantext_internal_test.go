package cli

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/plan"
)

// TestAPlanTellsKindsOfOneNameApart: by their group, as kubectl does; where a kind has its name alone, that says enough.
func TestAPlanTellsKindsOfOneNameApart(t *testing.T) {
	t.Parallel()
	told := planned{Objects: []plan.Object{
		{Action: engine.ActionCreate, Group: "apps", Kind: "Deployment", Namespace: "n", Name: "foo"},
		{Action: engine.ActionRemove, Kind: "Service", Namespace: "n", Name: "foo"},
		{Action: engine.ActionCreate, Group: "serving.knative.dev", Kind: "Service", Namespace: "n", Name: "foo"},
	}}
	var text strings.Builder
	if err := told.print(table{out: &text}, "none"); err != nil {
		t.Fatal(err)
	}
	if want := "+ Deployment n/foo\n- Service n/foo\n+ Service.serving.knative.dev n/foo\n"; !strings.Contains(text.String(), want) {
		t.Errorf("it says %s", text.String())
	}
}
