package index

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// TestTheLibraryIsDrawnWhatItTakes: whatever the text is densest in. About half of what reading allocates is held at once.
func TestTheLibraryIsDrawnWhatItTakes(t *testing.T) {
	for name, text := range map[string]string{
		"Flow": "- urls: [" + strings.Repeat("a,", 50_000) + "a]\n", "Maps": "- maintainers: [" + strings.Repeat("{name: a},", 20_000) + "{name: a}]\n",
		"Lines": "- urls:\n" + strings.Repeat("  - a\n", 50_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var versions []*Version
		if err := library(t.Context(), []byte(text), &versions); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		taken := int64(after.TotalAlloc-before.TotalAlloc) / 2
		err := memory.New(taken, "--memory-budget").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			return library(ctx, []byte(text), &versions)
		})
		if !errors.Is(err, memory.ErrBudget) {
			t.Errorf("%s: reading %d bytes takes %d, and less was drawn", name, len(text), taken)
		}
	}
}
