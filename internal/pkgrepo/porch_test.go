package pkgrepo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// porch is what Porch writes into the shop, which begins with a README as Porch begins a branch.
func (s *shop) porch() upstream.Porch {
	s.Commit("main", "Intermediate commit: init", upstream.Text(map[string]string{"README.md": "hello\n"}))
	return upstream.Porch{Edited: s.Edited}
}

// stated is what of a package a snapshot says, a line for each state.
func stated(p *pkgrepo.Package) (lines []string) {
	for _, all := range [][]pkgrepo.Revision{p.Open, p.Published} {
		for i := range all {
			r := &all[i]
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %v", r.Lifecycle, r.Name, r.Workspace, r.Facts.Name, r.Err)))
		}
	}
	if p.Branch != nil {
		lines = append(lines, fmt.Sprintf("branch %s %s", p.Branch.Name, p.Branch.Facts.Name))
	}
	return lines
}

// TestARepositoryOfPorchIsReadAsItIs: each generation of it, with what people and Porch did to packages at any depth.
func TestARepositoryOfPorchIsReadAsItIs(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	p := s.porch()
	files := func(name, content string) map[string]string {
		return map[string]string{"Kptfile": kptfile(name), "data.yaml": content}
	}
	for i, workspace := range []string{"packagevariant-1", "second", "packagevariant-3", "packagevariant-4"} {
		p.Numbers = i > 1
		p.Draft("edge/web", workspace, "", files("web", fmt.Sprint("a: ", i, "\n")))
		if i == 1 {
			p.Propose("edge/web", workspace)
		}
		p.Approve("edge/web", workspace, i+1)
	}
	p.ProposeDeletion("edge/web", 3)
	p.Draft("edge/web", "packagevariant-5", "upgrade", files("web", "a: 5\n"))
	p.Draft("edge/web", "packagevariant-5", "render", files("web", "a: 6\n"))
	p.Draft("edge/web", "people", "edit", files("web", "a: 7\n"))
	p.Propose("edge/web", "people")
	p.Draft("new", "v1", "init", files("new", "a: 1\n"))
	tagged := p.Draft("gone", "first", "init", files("gone", "a: 1\n"))
	p.Tag("gone/v1", tagged, true)
	p.DeleteRef("refs/heads/drafts/gone/first")

	snapshot := s.sync()
	for path, want := range map[string][]string{
		"edge/web": {
			"Draft  packagevariant-5 web <nil>", "Proposed  people web <nil>", "Published v4 packagevariant-4 web <nil>",
			"DeletionProposed v3 packagevariant-3 web <nil>", "Published v2 second web <nil>", "Published v1   <nil>", "branch v4 web",
		},
		"new": {"Draft  v1 new <nil>"},
	} {
		pkg := snapshot.Package(path)
		if pkg == nil {
			t.Fatalf("there is no %s", path)
		}
		got := stated(pkg)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if gone := snapshot.Package("gone"); gone != nil {
		t.Errorf("a tag that is not on the branch is a revision: %+v", gone)
	}
	if got := snapshot.Package("edge/web").NextWorkspace(); got != "packagevariant-6" {
		t.Errorf("the next workspace is %s", got)
	}
	if len(snapshot.Packages) != 2 || len(snapshot.Problems) != 0 {
		t.Errorf("%d packages, problems %v", len(snapshot.Packages), snapshot.Problems)
	}
	before := s.Raw("for-each-ref")
	s.sync()
	if now := s.Raw("for-each-ref"); now != before {
		t.Errorf("who reads has written:\n%s", now)
	}
}

// TestHostileLinesOfPorchAreNoWorkspaces: whatever stands behind "kpt:", the revision is that of its tag, and its workspace is unknown
// where the line is none of this package's.
func TestHostileLinesOfPorchAreNoWorkspaces(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	p := s.porch()
	lines := map[string]string{
		"garbage": `kpt:{invalid:annotation}`, "cut": `kpt:{"package":"cut","workspaceName":"packagevariant-9`,
		"huge":    `kpt:{"package":"huge","workspaceName":"` + strings.Repeat("w", 1<<20) + `"}`,
		"long":    `kpt:{"package":"long","workspaceName":"packagevariant-9","task":{"patch":"` + strings.Repeat("x", 1<<20) + `"}}`,
		"outside": `kpt:{"package":"../../etc","workspaceName":"packagevariant-9"}`, "other": `kpt:{"package":"good","workspaceName":"packagevariant-9"}`,
		"climbs": `kpt:{"package":"climbs","workspaceName":"../../main"}`, "wrong": `kpt:{"package":["wrong"],"workspaceName":9}`,
		"deep": `kpt:` + strings.Repeat(`{"task":`, 100_000), "good": `kpt:{"package":"good","workspaceName":"packagevariant-2","revision":"1"}`,
		"many": strings.Repeat(`kpt:{"package":"many","workspaceName":"packagevariant-9"}`+"\n", 2) + "kpt:{",
	}
	for name, line := range lines {
		p.Tag(name+"/v1", p.Commit("main", "Approve "+name+"/v1\n\n"+line+"\n", packaged(name, "a: 1")), false)
	}
	snapshot := s.sync()
	var known []string
	for name := range lines {
		pkg := snapshot.Package(name)
		if pkg == nil || pkg.Branch == nil || pkg.Newest() == nil || pkg.Newest().Err != nil || pkg.Newest().Facts.Name != name {
			t.Errorf("%s is not read: %+v", name, pkg)
			continue
		}
		if workspace := pkg.Newest().Workspace; workspace != "" {
			known = append(known, name+" "+workspace)
		}
	}
	slices.Sort(known)
	if diff := cmp.Diff([]string{"good packagevariant-2", "many packagevariant-9"}, known); diff != "" {
		t.Errorf("workspaces (-want +got):\n%s", diff)
	}
	if len(snapshot.Packages) != len(lines) {
		t.Errorf("%d packages", len(snapshot.Packages))
	}
}

// TestADraftOfPorchIsBegunOnWhatItsHistorySays: its Kptfile does not. Who writes to it learns what the branch had then, or that the
// branch has moved on since.
func TestADraftOfPorchIsBegunOnWhatItsHistorySays(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	p := s.porch()
	for i, workspace := range []string{"packagevariant-1", "packagevariant-2"} {
		p.Draft("web", workspace, "", map[string]string{"Kptfile": kptfile("web"), "data.yaml": fmt.Sprint("a: ", i, "\n")})
		if i == 0 {
			p.Approve("web", workspace, 1)
		}
	}
	base := func() (base, tree string) {
		s.sync()
		s.one(pkgrepo.Change{Kind: pkgrepo.Write, Package: "web", Workspace: "packagevariant-2", Make: func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
			base, tree = now.Open.Facts.Base, now.Branch.Tree
			return pkgrepo.Made{Unchanged: true}, nil
		}})
		return base, tree
	}
	if begun, tree := base(); begun != tree {
		t.Errorf("it was begun on %q, and the branch has %s", begun, tree)
	}
	s.Commit("main", "an edit", packaged("web", "b: 1"))
	if begun, tree := base(); begun != "" {
		t.Errorf("it was begun on %q, and the branch has %s by now", begun, tree)
	}
}
