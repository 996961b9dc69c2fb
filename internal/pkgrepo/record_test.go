package pkgrepo_test

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestWhatSomebodyElseMergedIsRecorded: with a number, and without a commit on the branch, which may be protected.
func TestWhatSomebodyElseMergedIsRecorded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		// merge brings the draft onto the branch.
		merge func(s *shop, draft pkgrepo.Result)
	}{
		"Fast":   {"The branch is at the draft's own commit.", func(s *shop, draft pkgrepo.Result) { s.SetRef("refs/heads/main", draft.Commit) }},
		"Squash": {"The branch has a commit of another history.", func(s *shop, draft pkgrepo.Result) { s.Commit("main", "squashed", s.Tree(draft.Commit)) }},
		"Deleted": {"The draft's branch went with its merge.", func(s *shop, draft pkgrepo.Result) {
			s.SetRef("refs/heads/main", draft.Commit)
			s.DeleteRef("refs/heads/drafts/web/" + draft.Workspace)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.publish("web", "one")
			draft := s.one(write("web", "", "two"))
			change := pkgrepo.Change{Kind: pkgrepo.Record, Package: "web", Workspace: draft.Workspace, Tree: draft.Tree}
			if r := s.Apply(t.Context(), []pkgrepo.Change{change})[0]; !errors.Is(r.Err, pkgrepo.ErrMoved) {
				t.Errorf("before the merge: %+v", r)
			}
			test.merge(s, draft)
			head := s.Raw("rev-parse", "main")
			s.Hook("update", `[ "$1" != refs/heads/main ]`)
			s.sync()
			for i, changed := range []bool{true, false} {
				if r := s.one(change); r.Number != 2 || r.Changed != changed || r.Commit != head {
					t.Errorf("%s %d: %+v", test.reason, i, r)
				}
			}
			refs := s.Raw("for-each-ref", "--format=%(refname) %(objectname)")
			if !strings.Contains(refs, "refs/tags/web/v2 "+head) || strings.Contains(refs, "drafts/") || !strings.Contains(refs, "refs/heads/main "+head) {
				t.Errorf("%s: the refs are\n%s", test.reason, refs)
			}
		})
	}
}

// TestAChangeThatIsMergedInPartStays: somebody brought the package alone to the branch. The rest of the change would be gone with its branch.
func TestAChangeThatIsMergedInPartStays(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.publish("web", "one")
	draft := s.one(write("web", "", "two"))
	tip := s.person(draft.Commit, "shared/b.yaml", "b\n")
	ref := "refs/heads/drafts/web/" + draft.Workspace
	s.SetRef(ref, tip)
	change := pkgrepo.Change{Kind: pkgrepo.Record, Package: "web", Workspace: draft.Workspace, Tree: draft.Tree}
	s.Commit("main", "the package", s.Tree(draft.Commit))
	if r := s.Apply(t.Context(), []pkgrepo.Change{change})[0]; !errors.Is(r.Err, pkgrepo.ErrOutside) || s.refs()[ref] != tip {
		t.Errorf("%+v, and the refs are %v", r, s.refs())
	}
	s.Commit("main", "squashed", s.Tree(tip))
	if r := s.one(change); r.Number != 2 || s.refs()[ref] != "" {
		t.Errorf("%+v, and the refs are %v", r, s.refs())
	}
}

// TestWhatIsNotWhatWasReviewedIsNotRecorded: somebody has changed it on the branch, or taken it away.
func TestWhatIsNotWhatWasReviewedIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	draft := s.one(write("web", "", "one"))
	change := pkgrepo.Change{Kind: pkgrepo.Record, Package: "web", Workspace: draft.Workspace, Tree: draft.Tree}
	files := s.Tree(draft.Commit)
	files["web/a.yaml"] = upstream.File{Content: "another"}
	s.Commit("main", "merged, and more", files)
	s.sync()
	if r := s.Apply(t.Context(), []pkgrepo.Change{change})[0]; !errors.Is(r.Err, pkgrepo.ErrMoved) {
		t.Errorf("another one is on the branch: %+v", r)
	}
	s.Commit("main", "taken away", upstream.Files{"web": {Mode: upstream.Removed}})
	s.sync()
	if r := s.Apply(t.Context(), []pkgrepo.Change{change})[0]; !errors.Is(r.Err, pkgrepo.ErrGone) {
		t.Errorf("nothing is on the branch: %+v", r)
	}
	if refs := s.Raw("for-each-ref", "--format=%(refname)"); strings.Contains(refs, "refs/tags/") || !strings.Contains(refs, "refs/heads/drafts/") {
		t.Errorf("the refs are\n%s", refs)
	}
}
