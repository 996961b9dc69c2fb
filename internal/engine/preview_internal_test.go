package engine

import (
	"errors"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// TestAPreviewCutsNothing: whoever shows it masks what is secret first, and half a value would not be known as one. An error is cut.
func TestAPreviewCutsNothing(t *testing.T) {
	t.Parallel()
	long := errors.New(strings.Repeat("x", 2*maxText))
	err := joined(StageApply, modulesv1.ApplyFailedReason, []memberError{{cluster.Ref{Name: "a"}, long}})
	if told := blockerOf(err); told.Message != long.Error() || told.Stage != StageApply || len(err.Error()) > maxText+len("…") {
		t.Errorf("%d bytes are told, and %d of the error", len(told.Message), len(err.Error()))
	}
	p := prospect{row: row{action: ActionKeep, member: &modulesv1.Member{Version: "v1", Kind: "ConfigMap"}}, lacking: long, err: long}
	if told := p.tell(); told.Reason != long.Error() || told.Blocked != long.Error() {
		t.Errorf("%d and %d bytes are told", len(told.Reason), len(told.Blocked))
	}
}
