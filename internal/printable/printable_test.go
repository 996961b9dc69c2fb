package printable_test

import (
	"testing"

	"sluice.dev/sluice/internal/printable"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short": "short", "exactly 10": "exactly 10", "more than ten": "more th…", "more t€ and": "more t…",
	} {
		if got := printable.Cut(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
