package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestWhatIsShownIsWhatIsApproved: by the digest, or where that cannot be known by the release.
func TestWhatIsShownIsWhatIsApproved(t *testing.T) {
	t.Parallel()
	waits := &modulesv1.Pending{Version: "2.0.0", Template: "foo-2.0.0", Plan: &modulesv1.Plan{Digest: "sha256:1"}}
	to := chosenRelease{Version: "2.0.0", Template: "foo-2.0.0"}
	for name, tc := range map[string]struct {
		shown planned
		want  bool
	}{
		"TheSame":       {planned{Digest: "sha256:1", To: to}, true},
		"AnotherDigest": {planned{Digest: "sha256:2", To: to}, false},
		"NoDigest":      {planned{To: to}, true},
		"NewerRelease":  {planned{To: chosenRelease{Version: "3.0.0", Template: "foo-3.0.0"}}, false},
		"ByAChannel":    {planned{To: chosenRelease{Version: "2.0.0", Template: "foo-fast"}}, false},
	} {
		if got := tc.shown.isOf(waits); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

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
		a := &approver{planner: &planner{why: &why{base: &base{IOStreams: genericiooptions.IOStreams{In: tc.answer, ErrOut: io.Discard}, session: &session{}}}}}
		if err := a.agreed(tc.ctx, "foo", "sha256:1"); ExitCode(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
