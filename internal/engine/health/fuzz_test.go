package health_test

import (
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
)

// FuzzExpression shows that no expression ends the program, and that what is said about it stays one bounded line.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"status.phase == 'Up'", "has(status.phase)", "status.conditions.exists(c, c.type == 'Ready')", "status.?a.orValue(1) == 1",
		"status.list.map(x, x in [status.n])[0]", "int(metadata.name) == 1", "1 / (status.n - 3) == 1", "'\n' + status", "timestamp(status.phase) > timestamp(0)",
		"status.list.map(x, x * x).size() > 2", "google.protobuf.Timestamp{} == status", "type(status) == map", "__result__", "@result", "``",
	} {
		f.Add(seed)
	}
	library, err := health.NewLibrary()
	if err != nil {
		f.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"},
		"status": map[string]any{"phase": "Up", "n": int64(3), "f": 0.5, "nil": nil, "list": []any{int64(1), "b", true}},
	}}
	f.Fuzz(func(t *testing.T, text string) {
		line := func(text string, most int) {
			t.Helper()
			if len(text) > most {
				t.Errorf("%d bytes: %q", len(text), text)
			}
			for _, r := range text {
				if r != ' ' && !unicode.IsPrint(r) {
					t.Fatalf("%q does not print", text)
				}
			}
		}
		checker, err := library.Checker([]modulesv1.HealthExpression{{APIVersion: "v1", Kind: "A", Current: text}})
		if err != nil {
			line(err.Error(), 2048)
			return
		}
		_, message := checker.Check(object)
		line(message, 1024)
		if readiness, err := library.Readiness(text); err == nil {
			_, message := readiness.Ready(object, nil)
			line(message, 1024)
		}
	})
}
