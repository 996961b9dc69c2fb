package health_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
)

// repeated is a list of so many equal numbers.
func repeated(value int64, times int) []any {
	list := make([]any, times)
	for i := range list {
		list[i] = value
	}
	return list
}

// TestHostileExpressionsEnd: these go on for minutes, or for ever, unless what calls do is counted.
func TestHostileExpressionsEnd(t *testing.T) {
	t.Parallel()
	subject := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"a": repeated(1, 5_000), "b": repeated(2, 5_000), "c": repeated(1, 5_000),
			"few": repeated(1, 300), "nested": []any{repeated(1, 5_000)},
			"text": strings.Repeat("a", 500_000),
		},
	}}
	tests := map[string]struct {
		reason     string
		expression string
	}{
		"Loops":    {"each turn of a loop counts", "spec.a.all(x, spec.a.all(y, true))"},
		"In":       {"a list is looked through whole", "!spec.a.exists(x, x in spec.b)"},
		"InNested": {"with what is in it", "spec.few.all(x, spec.few.all(y, !(spec.b in spec.nested)))"},
		"Equal":    {"lists are compared whole", "spec.few.all(x, spec.few.all(y, spec.a == spec.c))"},
		"NotEqual": {"also to differ", "spec.few.all(x, spec.few.all(y, !(spec.a != spec.c)))"},
		"Doubled": {
			"a list that is doubled again and again counts before it is looked at",
			"[[1]]" + strings.Repeat(".map(a, a + a)", 60) + ".all(a, 2 in a)",
		},
		"Shared": {
			"a list of lists counts with all that is in them",
			"spec.few.map(a, spec.few.map(b, spec.few)) == spec.few.map(a, spec.few.map(b, spec.few))",
		},
		"Text":   {"a text counts by its length", "spec.few.all(x, spec.few.all(y, size(spec.text) > 0))"},
		"Number": {"also where an error is passed over", "spec.few.exists(x, spec.few.exists(y, int(spec.text) == 1))"},
		"Zones":  {"a time zone is a file", "spec.a.all(x, timestamp(x).getHours('Europe/Berlin') >= 0)"},
		"Maps":   {"maps count with their values", "spec.few.all(x, spec.few.all(y, spec == spec))"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker, err := newChecker([]modulesv1.HealthExpression{{APIVersion: "v1", Kind: "A", Current: test.expression}})
			if err != nil {
				t.Fatal(err)
			}
			status, message := checker.Check(subject)
			if status != health.Unknown || !strings.Contains(message, "cost limit exceeded") || checker.Spent() < 30_000 {
				t.Errorf("%s: %s, %q, cost %d", test.reason, status, message, checker.Spent())
			}
		})
	}
}

func TestCostsAreCharged(t *testing.T) {
	t.Parallel()
	subject := object(t, "{apiVersion: v1, kind: A, metadata: {name: a}, status: {phase: Up, conditions: [{type: Ready, status: 'True'}]}}")
	tests := map[string]struct {
		reason, expression string
		least, most        uint64
	}{
		"Field":  {"a field costs next to nothing", "status.phase == 'Up'", 2, 10},
		"Filter": {"what is usual costs little", "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True')", 10, 100},
		"Keys":   {"a key is found at once", "'phase' in status", 2, 10},
		"Error":  {"what fails has cost as well", "int(status.phase) == 1", 2, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker, err := newChecker([]modulesv1.HealthExpression{{APIVersion: "v1", Kind: "A", Current: test.expression}})
			if err != nil {
				t.Fatal(err)
			}
			checker.Check(subject)
			once := checker.Spent()
			if once < test.least || once > test.most {
				t.Errorf("%s: %d", test.reason, once)
			}
			if checker.Check(subject); checker.Spent() != 2*once {
				t.Errorf("each evaluation costs the same: %d, then %d", once, checker.Spent()-once)
			}
		})
	}
}
