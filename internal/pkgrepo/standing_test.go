package pkgrepo_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// onProd is the same Git repository, read on branch prod.
func (s *shop) onProd() *shop {
	other := *s
	other.settings.Branch = "prod"
	other.Repository = s.depot.Repository(other.settings)
	return &other
}

// releases are the names of the published revisions of the package app.
func releases(s *pkgrepo.Snapshot) (names []string) {
	if p := s.Package("app"); p != nil {
		for i := range p.Published {
			names = append(names, p.Published[i].Name)
		}
	}
	return names
}

// TestTagsOfOtherBranchesAreNoRevisions: not followed, not counted, not marked, not pruned; and their numbers are not used again.
func TestTagsOfOtherBranchesAreNoRevisions(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overHTTP, overSSH} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			main := newShop(t, over)
			main.Commit("main", "begin", packaged("other"))
			main.SetRef("refs/heads/prod", main.at("main"))
			prod := main.onProd()
			main.sync()
			prod.sync()
			main.publish("app", "one")
			if r := prod.publish("app", "one"); r.Number != 2 {
				t.Errorf("prod publishes v%d", r.Number)
			}
			if r := main.publish("app", "two"); r.Number != 3 {
				t.Errorf("main publishes v%d", r.Number)
			}
			main.Tag("app/v1.5.0", main.at("main"), true)
			main.Tag("elsewhere/v1", main.CommitTree(main.at("main^{tree}"), "aside"), false)
			main.restart()
			prod = main.onProd()
			onMain, onProd := main.sync(), prod.sync()
			if diff := cmp.Diff([]string{"v3", "v1", "v1.5.0"}, releases(onMain)); diff != "" {
				t.Errorf("main: %s", diff)
			}
			if diff := cmp.Diff([]string{"v2"}, releases(onProd)); diff != "" {
				t.Errorf("prod: %s", diff)
			}
			if onMain.Package("elsewhere") != nil || onProd.Package("elsewhere") != nil {
				t.Error("a package that no branch has is there")
			}
			for _, selector := range []pkgrepo.Selector{{Revision: "3"}, {Revision: "v1.5.0"}, {Range: ">=1.0.0"}} {
				selector.Package = "app"
				if found, err := prod.Resolve(t.Context(), selector); !errors.Is(err, pkgrepo.ErrNotFound) {
					t.Errorf("%+v chooses %+v: %v", selector, found, err)
				}
				if _, err := main.Resolve(t.Context(), selector); err != nil {
					t.Error(err)
				}
			}
			if found, err := prod.Resolve(t.Context(), pkgrepo.Selector{Package: "app", Tag: "v3"}); err != nil || found.Commit != main.at("app/v3") {
				t.Errorf("a tag that a person names leads to %+v: %v", found, err)
			}
			main.Tag("v1.0.0", main.at("prod"), false)
			prod.sync()
			if found, err := prod.Resolve(t.Context(), pkgrepo.Selector{Package: "app", Range: ">=1.0.0"}); err != nil || found.Ref != "refs/tags/v1.0.0" {
				t.Errorf("the repository's own tag is not found: %+v: %v", found, err)
			}
			prod.one(pkgrepo.Change{Kind: pkgrepo.ProposeDeletion, Package: "app"})
			if names := main.names(); !slices.Contains(names, "refs/heads/deletionProposed/app/v2") || slices.Contains(names, "refs/heads/deletionProposed/app/v3") {
				t.Error(names)
			}
			if newest := main.sync().Package("app").Newest(); newest.Lifecycle != pkgrepo.Published {
				t.Errorf("%+v", newest)
			}
			for range 3 {
				prod.publish("app", strings.Repeat("more ", len(releases(prod.sync()))))
			}
			if got := main.leftovers(keeping(3)); len(got) != 0 {
				t.Errorf("tags of another branch count: %+v", got)
			}
			main.sound()
		})
	}
}

// TestAnotherBranchesTagsBecomeRevisionsOnceMerged, and those of a branch that is set back are none any more.
func TestAnotherBranchesTagsBecomeRevisionsOnceMerged(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	first := s.Commit("main", "one", packaged("app", "one"))
	s.Tag("app/v1", first, false)
	s.SetRef("refs/heads/prod", first)
	second := s.Commit("prod", "two", packaged("app", "two"))
	s.Tag("app/v2", second, false)
	for _, step := range []struct {
		reason string
		head   string
		want   []string
	}{
		{"It is on the other branch.", first, []string{"v1"}},
		{"It was merged.", s.CommitTree(s.at(second+"^{tree}"), "merge", first, second), []string{"v2", "v1"}},
		{"The branch was set back.", first, []string{"v1"}},
		{"The branch was rewritten.", s.CommitTree(s.at(first+"^{tree}"), "anew"), nil},
		{"And is as it was.", second, []string{"v2", "v1"}},
	} {
		s.SetRef("refs/heads/main", step.head)
		got := s.sync()
		if diff := cmp.Diff(step.want, releases(got)); diff != "" || got.Package("app").Next() != 3 {
			t.Errorf("%s %s", step.reason, diff)
		}
	}
}

// TestWhatIsKnownOfTagsCostsNothing: no request where there are none, where nothing has moved, and where the branch was moved here.
func TestWhatIsKnownOfTagsCostsNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	fetches := func(what string, most int, do func()) {
		t.Helper()
		s.server.Reset()
		if do(); s.server.Count(upstream.Fetch) > most {
			t.Errorf("%s: %d fetches", what, s.server.Count(upstream.Fetch))
		}
	}
	s.Commit("main", "begin", packaged("other"))
	fetches("no tags", 1, func() { s.sync() })
	fetches("publications", 0, func() {
		s.publish("app", "one")
		s.publish("app", "two")
	})
	if diff := cmp.Diff([]string{"v2", "v1"}, releases(s.Snapshot())); diff != "" {
		t.Error(diff)
	}
	fetches("nothing moved", 0, func() { s.sync() })
	s.Commit("main", "by others", packaged("other", "more"))
	fetches("the branch was moved by others", 1, func() { s.sync() })
	s.Tag("other/v1", s.Commit("main", "by others", packaged("other", "more", "still more")), false)
	fetches("others published", 1, func() { s.sync() })
	s.Commit("main", "by others", packaged("other", "one of two"))
	s.Commit("main", "by others", packaged("other", "two of two"))
	fetches("the branch was moved by two commits", 2, func() { s.sync() })
	s.restart()
	fetches("the first look", 2, func() { s.sync() })
	if diff := cmp.Diff([]string{"v2", "v1"}, releases(s.Snapshot())); diff != "" {
		t.Error(diff)
	}
}

// TestTagsAreHeldWhereTheServerDoesNotTell: what was known stays, and what is new waits, without harm to anything else.
func TestTagsAreHeldWhereTheServerDoesNotTell(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	first := s.Commit("main", "one", packaged("app", "one"))
	s.Tag("app/v1", first, false)
	s.SetRef("refs/heads/prod", first)
	s.Tag("app/v2", s.Commit("prod", "two", packaged("app", "two")), false)
	s.sync()
	s.Tag("app/v3", s.Commit("main", "three", packaged("app", "three")), false)
	s.Commit("main", "more", packaged("other"))
	s.server.FailNext(1, upstream.Fault{}.On(upstream.Fetch)) // The head of the branch is read first.
	s.server.FailNext(1, upstream.Status(503).On(upstream.Fetch))
	held := s.sync()
	if diff := cmp.Diff([]string{"v1"}, releases(held)); diff != "" || held.Head != s.at("main") {
		t.Errorf("at %s: %s", held.Head, diff)
	}
	if p := held.Problems[pkgrepo.Unproven]; p.Count != 1 || !strings.HasPrefix(p.Names[0], "tag app/v3 (") {
		t.Errorf("%+v", p)
	}
	if got := held.Package("app").Next(); got != 4 {
		t.Errorf("the next number is %d", got)
	}
	if _, err := s.Resolve(t.Context(), pkgrepo.Selector{Package: "app", Revision: "v3"}); !errors.Is(err, pkgrepo.ErrNotFound) {
		t.Error(err)
	}
	now := s.sync()
	if diff := cmp.Diff([]string{"v3", "v1"}, releases(now)); diff != "" || len(now.Problems) > 0 {
		t.Errorf("%s, %+v", diff, now.Problems)
	}
}

// TestTagsOfOtherBranchesNameNoInnerPackages: what another branch publishes below a package is part of the package here.
func TestTagsOfOtherBranchesNameNoInnerPackages(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.Tag("edge/v1", s.Commit("main", "one", together(packaged("edge"), packaged("edge/web"))), false)
	s.SetRef("refs/heads/prod", s.at("main"))
	s.Tag("edge/web/v1", s.Commit("prod", "two", packaged("edge/web", "two")), false)
	if got := s.sync(); got.Package("edge/web") != nil || got.Package("edge").Branch.Tree != s.at("main:edge") {
		t.Errorf("the inner package is one of its own: %+v", got.Package("edge").Branch)
	}
	prod := s.onProd().sync()
	if prod.Package("edge/web").Newest() == nil || prod.Package("edge").Branch.Tree == s.at("prod:edge") {
		t.Errorf("the inner package is part of the outer one: %+v", prod.Package("edge").Branch)
	}
}
