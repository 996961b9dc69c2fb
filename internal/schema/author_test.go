package schema

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// wide is a pattern of a few bytes that is a program of hundred thousands of instructions.
func wide(count int) string { return "^" + strings.Repeat("(a?){1000}", count) + "$" }

// TestPatternsTakeNoMemoryBeforeTheyAreNeeded is alone in its process as long as it runs, as it measures the whole of it.
func TestPatternsTakeNoMemoryBeforeTheyAreNeeded(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	properties := "properties:\n"
	for i := range 5 {
		properties += "  p" + strconv.Itoa(i) + ": {type: string, pattern: '" + wide(100) + "'}\n"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Of(widget, yaml.MustParse(properties).YNode()); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
		t.Errorf("%d bytes of schema took %d MiB", len(properties), made>>20)
	}
}

func TestMatchingIsBounded(t *testing.T) {
	t.Parallel()
	d, err := Of(widget, yaml.MustParse("additionalProperties: {pattern: '"+wide(1)+"'}").YNode())
	if err != nil {
		t.Fatal(err)
	}
	object := yaml.MustParse("{a: " + strings.Repeat("a", 500) + manyTexts(100, 500) + "}").YNode()
	check := &Check{Steps: 5_000, Findings: 5}
	if _, err := check.Object(t.Context(), d, widget, object); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
}

func manyTexts(count, length int) string {
	return strings.ReplaceAll(manyFields(count), ": 1", ": "+strings.Repeat("a", length))
}

func TestWhatIsFoundIsShort(t *testing.T) {
	t.Parallel()
	d, err := Of(widget, yaml.MustParse("properties: {a: {enum: ["+strings.Repeat("x", 100_000)+"]}}").YNode())
	if err != nil {
		t.Fatal(err)
	}
	check := &Check{Steps: 5_000, Findings: 5}
	found, err := check.Object(t.Context(), d, widget, yaml.MustParse("{a: b}").YNode())
	if err != nil || len(found) != 1 || len(found[0].Problem) > 4096 {
		t.Error(len(found), err)
		for _, one := range found {
			t.Error(len(one.Problem))
		}
	}
}
