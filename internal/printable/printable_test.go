package printable_test

import (
	"strings"
	"testing"
	"unicode/utf8"

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

func TestCutEndsBetweenCharacters(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ä", 600)
	for limit := 1000; limit < 1010; limit++ {
		got := printable.Cut(text, limit)
		if len(got) > limit || len(got) < limit-2 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä…") {
			t.Errorf("cut to %d: got %d bytes ending in %q", limit, len(got), got[len(got)-6:])
		}
	}
	if got := printable.Cut("short", 5); got != "short" {
		t.Errorf("text that fits was changed to %q", got)
	}
}
