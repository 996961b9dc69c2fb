package packages

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
)

// crowd is a snapshot with one package that so many changes are open of.
func crowd(changes int) *pkgrepo.Snapshot {
	p := &pkgrepo.Package{Path: "app", Branch: &pkgrepo.Revision{Package: "app", Tree: "1"}}
	for i := range changes {
		workspace := fmt.Sprintf("w%d", i)
		p.Open = append(p.Open, pkgrepo.Revision{
			Package: "app", Workspace: workspace, Lifecycle: pkgrepo.Draft, Ref: "refs/heads/drafts/app/" + workspace, Commit: "1", Tree: "1",
		})
	}
	return &pkgrepo.Snapshot{Packages: map[string]*pkgrepo.Package{"app": p}}
}

// TestSomebodysThousandsOfBranchesAreNotThousandsOfObjects: proposals and what variants have made are shown before all else.
func TestSomebodysThousandsOfBranchesAreNotThousandsOfObjects(t *testing.T) {
	t.Parallel()
	s := crowd(20_000)
	open := s.Packages["app"].Open
	open[19_000].Lifecycle = pkgrepo.Proposed
	open[19_001].Workspace = pkgrepo.VariantWorkspace + "7"
	all := shown("cluster", s)
	if len(all) > maxOpen+pkgrepo.Detailed {
		t.Errorf("%d changes of one package have objects", len(all))
	}
	if got := leftOut(s); got != 20_000-maxOpen {
		t.Errorf("%d changes are said to be left out", got)
	}
	for _, at := range []int{19_000, 19_001} {
		if all[revisionName("cluster", &open[at])] == nil {
			t.Errorf("%s is left out", open[at].Workspace)
		}
	}
}

// TestWhatDidNotMoveWakesNobody: a snapshot is made anew at each move, with all packages in it.
func TestWhatDidNotMoveWakesNobody(t *testing.T) {
	t.Parallel()
	before, after := crowd(2), crowd(2)
	if !isSamePackage(before.Package("app"), after.Package("app")) {
		t.Error("what is the same counts as moved")
	}
	for reason, change := range map[string]func(*pkgrepo.Package){
		"a commit":      func(p *pkgrepo.Package) { p.Open[0].Commit = "2" },
		"a proposal":    func(p *pkgrepo.Package) { p.Open[0].Lifecycle = pkgrepo.Proposed },
		"a draft":       func(p *pkgrepo.Package) { p.Open = p.Open[:1] },
		"the branch":    func(p *pkgrepo.Package) { p.Branch.Tree = "2" },
		"no branch":     func(p *pkgrepo.Package) { p.Branch = nil },
		"a publication": func(p *pkgrepo.Package) { p.Published = []pkgrepo.Revision{{Name: "v1", Commit: "1"}} },
	} {
		after := crowd(2)
		change(after.Packages["app"])
		if isSamePackage(before.Package("app"), after.Package("app")) {
			t.Errorf("%s moves nothing", reason)
		}
	}
	if isSamePackage(nil, after.Package("app")) || !isSamePackage(nil, nil) {
		t.Error("a package that was not there")
	}
}
