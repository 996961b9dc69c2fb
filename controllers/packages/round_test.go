package packages

import (
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
)

// TestWhatMovesConcernsThoseAround: a package, those that it is in, and those that are in it.
func TestWhatMovesConcernsThoseAround(t *testing.T) {
	t.Parallel()
	before := &pkgrepo.Snapshot{Packages: map[string]*pkgrepo.Package{"gone": {Path: "gone"}, "same": {Path: "same"}}}
	after := &pkgrepo.Snapshot{Packages: map[string]*pkgrepo.Package{
		"edge/web/one": {Path: "edge/web/one", Open: []pkgrepo.Revision{{Workspace: "mine", Commit: "1"}}}, "same": {Path: "same"},
	}}
	m := movedPackages(before, after)
	for name, want := range map[string]bool{
		"gone": true, "gone/inner": true, "same": false, "edge": true, "edge/web": true, "edge/web/one": true, "edge/web/one/two": true,
		"edge/other": false, "": false, "/": false,
	} {
		if m.concerns(name) != want {
			t.Errorf("what moved concerns %q: %v", name, !want)
		}
	}
}
