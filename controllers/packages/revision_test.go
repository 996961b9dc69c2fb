package packages

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
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

// TestNoLabelHandsARevisionToAnotherProgram: whoever may push a Kptfile could have its object pruned by Argo CD.
func TestNoLabelHandsARevisionToAnotherProgram(t *testing.T) {
	t.Parallel()
	r := &pkgrepo.Revision{Facts: kpt.Facts{Labels: map[string]string{
		"team": "blue", "app.kubernetes.io/name": "web", "example.com/fluxcd.io": "x",
		"app.kubernetes.io/instance": "x", "app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "x",
		"kustomize.toolkit.fluxcd.io/name": "x", "applyset.kubernetes.io/part-of": "x", "modules.sluice.dev/inventory": "x",
	}}}
	want := map[string]string{"team": "blue", "app.kubernetes.io/name": "web", "example.com/fluxcd.io": "x"}
	if diff := cmp.Diff(want, revisionLabels(r)); diff != "" {
		t.Error(diff)
	}
}
