package cli

import (
	"bytes"
	"testing"
)

// TestWarningsAreToldOnce: and move no cursor.
func TestWarningsAreToldOnce(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	w := &warnings{to: &told, told: map[string]bool{}}
	for range 2 {
		w.HandleWarningHeader(299, "", "it is \x1b[31mold")
		w.HandleWarningHeader(199, "", "of a proxy")
	}
	if want := "Warning: it is \\x1b[31mold\n"; told.String() != want {
		t.Errorf("told %q", told.String())
	}
}
