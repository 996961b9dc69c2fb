package pkgrepo_test

import (
	"errors"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestTwoChangesOfAPackageArePublishedOneAfterTheOther: they are approved at the same moment.
func TestTwoChangesOfAPackageArePublishedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.publish("web", "one")
	first := s.one(write("web", "first", "two"))
	s.Raw("update-ref", "refs/heads/drafts/web/second", first.Commit)
	s.sync()
	second := s.one(write("web", "second", "three"))
	for _, r := range s.Apply(t.Context(), []pkgrepo.Change{
		{Kind: pkgrepo.Publish, Package: "web", Workspace: "first", Expect: first.Commit},
		{Kind: pkgrepo.Publish, Package: "web", Workspace: "second", Expect: second.Commit},
	}) {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if got := s.Tree("refs/tags/web/v2")["web/a.yaml"].Content; got != "two" {
		t.Error(got)
	}
	if got := s.Tree("refs/tags/web/v3")["web/a.yaml"].Content; got != "three" {
		t.Error(got)
	}
	s.sound()
}

// TestARevertOnTheBranchIsNotUndone: the draft was begun on what was taken back since.
func TestARevertOnTheBranchIsNotUndone(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	old := s.publish("web", "one")
	s.publish("web", "two, and bad")
	ours := s.one(write("web", "", "two, and bad, and more"))
	s.Raw("update-ref", "refs/heads/drafts/web/theirs", ours.Commit)
	s.Commit("main", "revert", s.Tree(old.Commit))
	s.sync()
	for _, workspace := range []string{ours.Workspace, "theirs"} {
		r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "web", Workspace: workspace, Expect: ours.Commit}})[0]
		if !errors.Is(r.Err, pkgrepo.ErrOutOfDate) {
			t.Errorf("%s: %+v", workspace, r)
		}
	}
}

// TestABranchOfAPersonAtAPublishedTipStays: somebody goes on where a publication left off.
func TestABranchOfAPersonAtAPublishedTipStays(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	draft := s.one(write("web", "first", "one"))
	s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "web", Workspace: "first", Expect: draft.Commit})
	s.Raw("update-ref", "refs/heads/drafts/web/second", draft.Commit)
	if open := s.sync().Package("web").Open; len(open) != 1 {
		t.Errorf("%+v", open)
	}
}

// TestABranchThatIsSetBackStays: the drafts were begun on what it had before, and would bring that again.
func TestABranchThatIsSetBackStays(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(s *shop, first pkgrepo.Result) (commit string){
		"to an earlier revision": func(_ *shop, first pkgrepo.Result) string { return first.Commit },
		"to before the package":  func(s *shop, first pkgrepo.Result) string { return s.at(first.Commit + "^") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.Commit("main", "begin", packaged("other"))
			first := s.publish("web", "one")
			s.publish("web", "two, and bad")
			ours := s.one(write("web", "", "two, and bad, and more"))
			s.SetRef("refs/heads/drafts/web/theirs", s.at("main"))
			theirs := s.Commit("drafts/web/theirs", "more", upstream.Text(map[string]string{"web/b.yaml": "more\n"}))
			s.SetRef("refs/heads/main", back(s, first))
			before := s.at("main")
			s.sync()
			for workspace, tip := range map[string]string{ours.Workspace: ours.Commit, "theirs": theirs} {
				r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "web", Workspace: workspace, Expect: tip}})[0]
				if !errors.Is(r.Err, pkgrepo.ErrOutOfDate) || s.at("main") != before {
					t.Errorf("%s: %+v", workspace, r)
				}
			}
		})
	}
}

// TestWhatWasRemovedIsPublishedAgain: somebody brings back the very commits, after the package has left the branch.
func TestWhatWasRemovedIsPublishedAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	draft := s.one(write("web", "first", "one"))
	publish := pkgrepo.Change{Kind: pkgrepo.Publish, Package: "web", Workspace: "first", Expect: draft.Commit}
	first := s.one(publish)
	s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "web", Expect: first.Commit})
	s.SetRef("refs/heads/proposed/web/first", draft.Commit)
	if open := s.sync().Package("web").Open; len(open) != 1 {
		t.Errorf("the proposal is gone: %+v", open)
	}
	if r := s.one(publish); r.Number != 2 || !r.Changed {
		t.Errorf("%+v", r)
	}
	if got := s.Tree("main")["web/a.yaml"].Content; got != "one" {
		t.Errorf("the branch has %q", got)
	}
	if open := s.sync().Package("web").Open; len(open) != 0 {
		t.Errorf("%+v", open)
	}
}
