package pkgrepo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestPackagesBeyondTheBoundHarmNoOther: somebody who may push branches makes packages without end.
func TestPackagesBeyondTheBoundHarmNoOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) {
		s.options.MaxPackages = 50
		s.settings.Wanted = map[string][]string{"new": {"ns/new"}, "kept": {"ns/kept"}}
	})
	head := s.Commit("main", "app", packaged("app"))
	tagged := s.Commit("main", "tagged", packaged("tagged"))
	s.Tag("tagged/v1", tagged, false)
	head = s.CommitTree(s.at(head+"^{tree}"), "without tagged", tagged)
	s.SetRef("refs/heads/main", head)
	s.SetRef("refs/heads/drafts/kept/mine", head)
	s.sync()
	for i := range 60 {
		s.SetRef(fmt.Sprintf("refs/heads/drafts/a%02d/w", i), head)
	}
	got := s.sync()
	if len(got.Packages) != 50 || got.Package("app") == nil || got.Package("tagged") == nil || got.Package("kept") == nil || got.Package("a46") == nil {
		t.Errorf("%d packages", len(got.Packages))
	}
	if p := got.Problems[pkgrepo.OverLimit]; p.Count != 13 || !strings.Contains(p.Names[0], "a47") {
		t.Errorf("%+v", p)
	}
	if got.CheckKnown("app") != nil || got.CheckKnown("none") != nil || !errors.Is(got.CheckKnown("a50"), pkgrepo.ErrLimit) {
		t.Errorf("%v, %v, %v", got.CheckKnown("app"), got.CheckKnown("none"), got.CheckKnown("a50"))
	}
	if _, moved, err := s.Sync(t.Context()); moved || err != nil {
		t.Errorf("nothing has moved: %t, %v", moved, err)
	}
	results := s.Apply(t.Context(), []pkgrepo.Change{write("app", "", "x"), write("a50", "", "x"), write("new", "", "x")})
	if results[0].Err != nil || !errors.Is(results[1].Err, pkgrepo.ErrLimit) || results[2].Err != nil {
		t.Errorf("%v | %v | %v", results[0].Err, results[1].Err, results[2].Err)
	}
	if got = s.sync(); got.Package("new") == nil || got.Package("app").Find(results[0].Workspace) == nil {
		t.Error("what was written is not known")
	}
	for i := range 60 {
		s.DeleteRef(fmt.Sprintf("refs/heads/drafts/a%02d/w", i))
	}
	if got = s.sync(); got.Problems[pkgrepo.OverLimit].Count != 0 || got.CheckKnown("a50") != nil {
		t.Errorf("%+v", got.Problems)
	}
}

// TestFoldersBeyondTheBoundAreNamed: the first ones of the branch are known, and the file that lists them is left as it is.
func TestFoldersBeyondTheBoundAreNamed(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.options.MaxPackages, s.settings.Index = 10, true })
	s.publish("p00", "x")
	index := s.Tree("main")[".sluice/index"].Content
	files := upstream.Files{}
	for i := range 12 {
		files[fmt.Sprintf("p%02d/Kptfile", i)] = upstream.File{Content: kptfile("p")}
	}
	head := s.Commit("main", "many", files)
	s.SetRef("refs/heads/drafts/a/mine", head)
	got := s.sync()
	if p := got.Problems[pkgrepo.OverLimit]; len(got.Packages) != 10 || p.Count != 3 || got.Package("p09") == nil {
		t.Errorf("%d packages, %+v", len(got.Packages), p)
	}
	if !errors.Is(got.CheckKnown("p11"), pkgrepo.ErrLimit) || !errors.Is(got.CheckKnown("a"), pkgrepo.ErrLimit) {
		t.Error("what is left out seems not to be there")
	}
	s.publish("p01", "y")
	if now := s.Tree("main")[".sluice/index"].Content; now != index {
		t.Errorf("the list leaves packages out: %q", now)
	}
}

// TestRefsBeyondTheBoundHarmNoOther: a package has its tags and drafts though another one has too many.
func TestRefsBeyondTheBoundHarmNoOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.options.MaxRefs = 40 })
	head := s.Commit("main", "all", together(packaged("app"), packaged("loud")))
	s.Tag("app/v1", head, false)
	s.Tag("app/v1.2.0", head, false)
	s.SetRef("refs/heads/drafts/app/mine", head)
	s.SetRef("refs/heads/drafts/app/packagevariant-1", head)
	s.SetRef("refs/heads/feature", head)
	for i := range 50 {
		s.SetRef(fmt.Sprintf("refs/heads/drafts/loud/w%02d", i), head)
	}
	got := s.sync()
	if len(got.Refs) != 40 || got.RefsLeftOut != 16 || got.CheckKnown("app") != nil || !errors.Is(got.CheckKnown("loud"), pkgrepo.ErrLimit) {
		t.Errorf("%d refs, %d left out, %+v", len(got.Refs), got.RefsLeftOut, got.Problems)
	}
	if app := got.Package("app"); len(app.Open) != 2 || len(app.Published) != 2 {
		t.Errorf("%+v", app)
	}
	if found, err := s.Resolve(t.Context(), pkgrepo.Selector{Package: "app", Range: "1.x"}); err != nil || found.Revision != "v1.2.0" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, selector := range []pkgrepo.Selector{{Package: "loud", Range: "1.x"}, {Package: "app", Branch: "feature"}} {
		if _, err := s.Resolve(t.Context(), selector); !errors.Is(err, pkgrepo.ErrLimit) {
			t.Errorf("%+v: %v", selector, err)
		}
	}
	results := s.Apply(t.Context(), []pkgrepo.Change{write("app", "mine", "x"), write("loud", "", "x")})
	if results[0].Err != nil || !errors.Is(results[1].Err, pkgrepo.ErrLimit) {
		t.Errorf("%v | %v", results[0].Err, results[1].Err)
	}
	if now := s.Snapshot(); !errors.Is(now.CheckKnown("loud"), pkgrepo.ErrLimit) || now.RefsLeftOut == 0 {
		t.Error("after a push, what is left out seems not to be there")
	}
	for i := range 20 {
		s.DeleteRef(fmt.Sprintf("refs/heads/drafts/loud/w%02d", i))
	}
	if got = s.sync(); len(got.Problems) != 0 || got.RefsLeftOut != 0 || len(got.Package("loud").Open) != 30 {
		t.Errorf("%+v", got.Problems)
	}
}

// TestARefInTheWayStopsNothingElse: Git makes no branch in a folder that has the name of one.
func TestARefInTheWayStopsNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref, said string
		app       error
	}{
		"all drafts":        {"refs/heads/drafts", "branch drafts is in the way of drafts/app/", pkgrepo.ErrInTheWay},
		"drafts of another": {"refs/heads/drafts/other", "branch drafts/other is in the way of drafts/other/", nil},
		"a tag":             {"refs/tags/app", "tag app is in the way of tag app/", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP, func(s *shop) { s.settings.Wanted = map[string][]string{"other": {"ns/other"}} })
			head := s.Commit("main", "app", together(packaged("app"), packaged("other")))
			s.Tag("other/v1", head, false)
			s.SetRef(c.ref, head)
			if p := s.sync().Problems[pkgrepo.InTheWay]; p.Count != 1 || !strings.Contains(p.Names[0], c.said) {
				t.Errorf("%+v", p)
			}
			results := s.Apply(t.Context(), []pkgrepo.Change{
				write("app", "", "x"), write("other", "", "x"), {Kind: pkgrepo.ProposeDeletion, Package: "other"},
			})
			if !errors.Is(results[0].Err, c.app) || results[2].Err != nil {
				t.Errorf("%v | %v", results[0].Err, results[2].Err)
			}
			blocked := results[1].Err
			if c.ref == "refs/tags/app" {
				blocked = s.Apply(t.Context(), []pkgrepo.Change{
					{Kind: pkgrepo.Publish, Package: "app", Workspace: results[0].Workspace, Expect: results[0].Commit},
				})[0].Err
			}
			if !errors.Is(blocked, pkgrepo.ErrInTheWay) || !strings.Contains(blocked.Error(), "rename or remove it") {
				t.Error(blocked)
			}
			s.DeleteRef(c.ref)
			s.publish("app", "y")
		})
	}
}
