package packages

import (
	"fmt"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// TestAConflictThatKeepsTheChangeFromBeingMadeIsListed: whoever has to mend it needs to know where it is.
func TestAConflictThatKeepsTheChangeFromBeingMadeIsListed(t *testing.T) {
	t.Parallel()
	conflict := merge.Conflict{File: "a.yaml", Path: "a", Base: "1", Upstream: "2", Local: "3"}
	for reason, open := range map[string]*pkgrepo.Revision{
		"a draft is open":    {Package: "app", Workspace: "packagevariant-1", Lifecycle: pkgrepo.Draft, Commit: "c"},
		"no change is there": nil,
	} {
		v := &packagesv1.PackageVariant{}
		if open != nil {
			v.Status.Change = &packagesv1.ChangeStatus{Workspace: open.Workspace, Files: &packagesv1.FileChanges{Added: 3}}
		}
		err := explain(fmt.Errorf("merge: %w", variant.ErrConflict))
		l := &look{downstream: &packagesv1.DownstreamStatus{}, digest: "d", open: open, last: &outcome{
			result: pkgrepo.Result{Err: err}, made: &made{conflicts: []merge.Conflict{conflict}},
		}}
		report := (&variants{}).Report(v, l, err)
		shown := v.Status.Preview
		if open != nil {
			shown = v.Status.Change
		}
		if shown == nil || shown.ConflictCount != 1 || len(shown.Conflicts) != 1 || shown.Conflicts[0].Local != "3" {
			t.Errorf("%s: %+v", reason, shown)
		}
		if open != nil && v.Status.Change.Files == nil {
			t.Errorf("%s: what the draft changes is not said any more", reason)
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
