package index_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/helm/index"
)

// TestFieldsThatNobodyKnowsAreBounded: JSON may have such, and each is compared with all before it.
func TestFieldsThatNobodyKnowsAreBounded(t *testing.T) {
	t.Parallel()
	for beyond, wrong := range []bool{false, true} {
		var text strings.Builder
		text.WriteString(`{"apiVersion": "v1", "entries": {}`)
		for field := range 1000 - 2 + beyond {
			fmt.Fprintf(&text, `, "unknown-%d": 0`, field)
		}
		text.WriteString("}")
		if _, err := convert(t, []byte(text.String()), nil); errors.Is(err, index.ErrIndex) != wrong || !wrong && err != nil {
			t.Errorf("%d beyond: got %v", beyond, err)
		}
	}
}
