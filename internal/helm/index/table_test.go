package index_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/helm/index"
)

// TestAnIndexThatIsStoredCanBeRead: the table's bound holds for whoever writes it, and not only for whoever reads it later.
func TestAnIndexThatIsStoredCanBeRead(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for c := range 65 { // A table says 64 MiB about charts.
		fmt.Fprintf(&text, "  %s%d: []\n", strings.Repeat("a", 1<<20), c)
	}
	if _, err := convert(t, []byte(text.String()), nil); !errors.Is(err, index.ErrIndex) || !strings.Contains(err.Error(), "65 charts") {
		t.Errorf("got %v", err)
	}
}
