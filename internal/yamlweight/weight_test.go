package yamlweight_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/yamlweight"
)

// TestTextsThatStandForMuchAreRefused: each is small, and what it stands for is not.
func TestTextsThatStandForMuchAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"LongText":      "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n",
		"Lists":         "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
		"LaterDocument": "a: 1\n---\na: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n",
		"Documents":     strings.Repeat("---\na: 1\n", 200),
	} {
		if err := yamlweight.Draw(t.Context(), []byte(text)); !errors.Is(err, yamlweight.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "a: &a 1\nb: *a\n", "---\na: 1\n---\nb: 2\n", ": : &a *b", "a: &a [*a]\n"} {
		if err := yamlweight.Draw(t.Context(), []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTheCostIsNoLessThanWhatIsTaken: whatever the text is densest in. About half of what reading allocates is held at once.
func TestTheCostIsNoLessThanWhatIsTaken(t *testing.T) {
	for name, text := range map[string]string{
		"Numbers": "a: [" + strings.Repeat("1,", 50_000) + "1]", "Lists": "a: [" + strings.Repeat("[],", 50_000) + "1]",
		"Maps": "a: [" + strings.Repeat("{a},", 50_000) + "1]", "Keys": strings.Repeat("- a:\n", 50_000), "Pairs": "a: [" + strings.Repeat("?,", 50_000) + "1]",
		"Items": strings.Repeat("-\n", 50_000), "Text": "a: " + strings.Repeat("x", 500_000), "Deep": strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"Dashes": strings.Repeat("- - - -\n", 20_000), "Quoted": "a: [" + strings.Repeat(`"",`, 50_000) + "1]",
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var into any
		_ = yaml.Unmarshal([]byte(text), &into) // What counts is what it takes.
		runtime.ReadMemStats(&after)
		taken := int64(after.TotalAlloc-before.TotalAlloc) / 2
		err := memory.New(taken, "--memory-budget").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			return yamlweight.Draw(ctx, []byte(text))
		})
		if !errors.Is(err, memory.ErrBudget) {
			t.Errorf("%s: reading takes %d, and less was drawn: %v", name, taken, err)
		}
	}
}
