package pkgrepo_test

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
)

// TestADraftThatCatchesUpLosesNothingOutsideItsFolder: a commit that stands on the branch as well has the branch's files beside the package.
// What a person changed there would be gone from the draft without a word, and be merged for Git.
func TestADraftThatCatchesUpLosesNothingOutsideItsFolder(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"beside": "shared/b.yaml", "in an inner package": "app/in/b.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.Tag("app/in/v1", s.Commit("main", "begin", together(packaged("other", "old"), packaged("app/in"))), false)
			s.publish("app", "one")
			draft := s.one(write("app", "packagevariant-2", "two"))
			tip := s.person(draft.Commit, file, "b\n")
			s.SetRef("refs/heads/drafts/app/packagevariant-2", tip)
			s.SetRef("refs/heads/main", s.person(s.at("main"), "app/mine.yaml", "mine\n"))
			change := write("app", "packagevariant-2", "three")
			if r := s.Apply(t.Context(), []pkgrepo.Change{change})[0]; !errors.Is(r.Err, pkgrepo.ErrOutside) || !strings.Contains(r.Err.Error(), file) {
				t.Errorf("the result is %+v", r)
			}
			if _, isThere := s.Tree("drafts/app/packagevariant-2")[file]; !isThere {
				t.Errorf("the draft has no %s any more", file)
			}
			r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Propose, Package: "app", Workspace: "packagevariant-2"}})[0]
			if !errors.Is(r.Err, pkgrepo.ErrOutside) {
				t.Errorf("it is proposed: %+v", r)
			}
			s.SetRef("refs/heads/drafts/app/packagevariant-2", s.person(s.at("drafts/app/packagevariant-2"), file, ""))
			s.one(change)
		})
	}
}

// TestAnEditOfAnInnerPackageThatHasLeftTheBranchIsNotDropped without a word: the publication would leave it out.
func TestAnEditOfAnInnerPackageThatHasLeftTheBranchIsNotDropped(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.Commit("main", "begin", packaged("other", "old"))
	s.publish("app", "one")
	inner := s.publish("app/in", "in")
	draft := s.one(write("app", "packagevariant-2", "two"))
	tip := s.person(draft.Commit, "app/in/b.yaml", "b\n")
	s.SetRef("refs/heads/drafts/app/packagevariant-2", tip)
	s.apply(pkgrepo.Change{Kind: pkgrepo.ProposeDeletion, Package: "app/in", Expect: inner.Commit})
	s.apply(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "app/in", Expect: inner.Commit})
	r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "app", Workspace: "packagevariant-2", Expect: tip}})[0]
	if !errors.Is(r.Err, pkgrepo.ErrOutside) || !strings.Contains(r.Err.Error(), "app/in/b.yaml") {
		t.Errorf("the result is %+v, and main has %v", r, s.Tree("main"))
	}
}
