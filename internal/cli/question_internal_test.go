package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestAnswersToTheQuestion: one who says neither yes nor no, but interrupts, is not said to have said no.
func TestAnswersToTheQuestion(t *testing.T) {
	t.Parallel()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, _ := io.Pipe()
	for name, tc := range map[string]struct {
		ctx    context.Context
		answer io.Reader
		code   int
	}{
		"Yes":       {t.Context(), strings.NewReader("Yes\n"), 0},
		"No":        {t.Context(), strings.NewReader("n\n"), ExitNo},
		"Nothing":   {t.Context(), strings.NewReader(""), ExitNo},
		"Interrupt": {interrupted, silent, ExitInterrupted},
	} {
		b := &base{IOStreams: genericiooptions.IOStreams{In: tc.answer, ErrOut: io.Discard}}
		if err := b.agreed(tc.ctx, "approve it", "Approve it"); ExitCode(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
