package installation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
)

// TestContentsAreBounded: names are as long as may be, and members in another order each time give the same.
func TestContentsAreBounded(t *testing.T) {
	t.Parallel()
	long := func(i, size int) string { return fmt.Sprintf("%03d", i) + strings.Repeat("x", size-3) }
	var members []modulesv1.Member
	for kind := range modulesv1.MaxContents + 2 {
		for namespace := range modulesv1.MaxContentNamespaces + 1 {
			members = append(members, modulesv1.Member{
				Group: long(0, 253), Version: long(0, 63), Kind: long(kind, 63), Namespace: long(namespace, 63), Name: "a",
			})
		}
	}
	got := contents(members)
	slices.Reverse(members)
	if diff := cmp.Diff(got, contents(members)); diff != "" {
		t.Errorf("the order of members counts:\n%s", diff)
	}
	if len(got) != modulesv1.MaxContents || got[0].Kind != long(0, 63) || got[127].Kind != long(127, 63) {
		t.Fatalf("%d kinds, from %+v to %+v", len(got), got[0], got[len(got)-1])
	}
	if first := got[0]; first.Count != 17 || len(first.Namespaces) != 16 || first.Namespaces[0] != long(0, 63) || first.Namespaces[15] != long(15, 63) {
		t.Errorf("first kind: %+v", first)
	}
	text, err := json.Marshal(got)
	if err != nil || len(text) > 200<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestContentsTellKindsApart(t *testing.T) {
	t.Parallel()
	got := contents([]modulesv1.Member{
		{Version: "v1", Kind: "Namespace", Name: "a"},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "a", Name: "a"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "b", Name: "a"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: "a"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"},
	})
	want := []modulesv1.InventoryContent{
		{Version: "v1", Kind: "ConfigMap", Namespaces: []string{"a", "b"}, Count: 3},
		{Version: "v1", Kind: "Namespace", Count: 1},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespaces: []string{"a"}, Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestProblemsHaveTheWorstFirst: each member once, on one line that ends somewhere.
func TestProblemsHaveTheWorstFirst(t *testing.T) {
	t.Parallel()
	of := func(name, reason string) engine.Problem {
		return engine.Problem{Ref: cluster.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Name: name}, Reason: reason, Message: "a\x1b\n" + strings.Repeat("ü", 1000)}
	}
	r := round{outcome: engine.Outcome{
		Contested: []engine.Problem{of("a", modulesv1.DriftContestedReason), of("d", modulesv1.DriftContestedReason)},
		Waiting:   []engine.Problem{of("d", modulesv1.ProgressingReason), of("b", modulesv1.ProgressingReason), of("c", modulesv1.HealthCheckFailedReason)},
	}}
	var got []string
	for _, one := range problems(r, errors.New("of no member")) {
		got = append(got, one.Name+" "+one.Reason)
		if len(one.Message) > 512 || strings.ContainsAny(one.Message, "\x1b\n") {
			t.Errorf("message %q", one.Message)
		}
	}
	if diff := cmp.Diff([]string{"c HealthCheckFailed", "b Progressing", "d Progressing", "a DriftContested"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestProblemsAreNoReasonToWrite: they go along with what is written anyway.
func TestProblemsAreNoReasonToWrite(t *testing.T) {
	t.Parallel()
	status := func(generation int64, name string) *modulesv1.ModuleInstallation {
		return &modulesv1.ModuleInstallation{Status: modulesv1.ModuleInstallationStatus{
			ObservedGeneration: generation, Problems: []modulesv1.MemberProblem{{Name: name}},
		}}
	}
	for want, after := range map[string]*modulesv1.ModuleInstallation{"old": status(1, "new"), "new": status(2, "new")} {
		(&installations{}).Ride(status(1, "old"), after)
		if got := after.Status.Problems[0].Name; got != want {
			t.Errorf("generation %d has the %s problems, want the %s", after.Status.ObservedGeneration, got, want)
		}
	}
}
