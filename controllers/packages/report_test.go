package packages

import (
	"fmt"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// TestAConflictThatKeepsTheChangeFromBeingMadeIsListed in the preview: the commit that is open does not have it.
func TestAConflictThatKeepsTheChangeFromBeingMadeIsListed(t *testing.T) {
	t.Parallel()
	conflict := packagesv1.Conflict{File: "a.yaml", Path: "a", Base: "1", Upstream: "2", Local: "3"}
	for reason, open := range map[string]*pkgrepo.Revision{
		"a draft is open":    {Package: "app", Workspace: "packagevariant-1", Lifecycle: pkgrepo.Draft, Commit: "c"},
		"no change is there": nil,
	} {
		v := &packagesv1.PackageVariant{}
		err := explain(fmt.Errorf("merge: %w", variant.ErrConflict))
		var change *packagesv1.ChangeStatus
		if open != nil {
			change = &packagesv1.ChangeStatus{Workspace: open.Workspace, Files: &packagesv1.FileChanges{Added: 3}}
		}
		l := &look{change: change, downstream: &packagesv1.DownstreamStatus{}, digest: "d", open: open, last: &outcome{
			result: pkgrepo.Result{Err: err}, made: &made{listed: conflictList{conflicts: []packagesv1.Conflict{conflict}}},
		}}
		report := (&variants{}).Report(v, l, err)
		if shown := v.Status.Preview; shown == nil || shown.ConflictCount != 1 || len(shown.Conflicts) != 1 || shown.Conflicts[0].Local != "3" {
			t.Errorf("%s: %+v", reason, shown)
		}
		if open != nil && (v.Status.Change.Files == nil || v.Status.Change.ConflictCount != 0) {
			t.Errorf("%s: the draft is shown as %+v", reason, v.Status.Change)
		}
		isSaid := false
		for _, fact := range report.Facts {
			isSaid = isSaid || fact.Type == packagesv1.ConflictedCondition
		}
		if !isSaid {
			t.Errorf("%s: %+v", reason, report.Facts)
		}
	}
}
