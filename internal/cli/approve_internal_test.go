package cli

import (
	"testing"

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
