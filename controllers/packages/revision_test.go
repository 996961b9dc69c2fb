package packages

import (
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// TestAnObjectWithoutAStatusAsksForNoMoreThanAnApproval: its status may have been lost after the approval was carried out.
func TestAnObjectWithoutAStatusAsksForNoMoreThanAnApproval(t *testing.T) {
	t.Parallel()
	approved := &packagesv1.PackageRevision{Spec: packagesv1.PackageRevisionSpec{Lifecycle: packagesv1.LifecyclePublished, ApprovedCommit: "c"}}
	for seen, want := range map[packagesv1.Lifecycle]bool{
		packagesv1.LifecycleProposed: false, packagesv1.LifecycleDeletionProposed: true,
	} {
		if got := isStale(approved, seen); got != want {
			t.Errorf("%s: the object is stale: %t, want %t", seen, got, want)
		}
	}
}
