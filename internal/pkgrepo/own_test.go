package pkgrepo_test

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

const draftOfWeb = "drafts/web/mine"

// TestADraftWithAPersonsCommitIsNotDropped: only a change that was asked to discard it does.
func TestADraftWithAPersonsCommitIsNotDropped(t *testing.T) {
	t.Parallel()
	edit := upstream.Text(map[string]string{"web/notes.txt": "hours of work\n"})
	for name, tc := range map[string]struct {
		reason string
		person func(s *shop)
		want   error
	}{
		"nobody": {"every commit is the program's own", func(*shop) {}, nil},
		"commit": {"a commit on top is somebody's work", func(s *shop) { s.Commit(draftOfWeb, "an edit", edit) }, pkgrepo.ErrNotOwn},
		"amend": {"so is a commit that was amended, though its message is the program's", func(s *shop) {
			s.Rewrite(draftOfWeb, s.Raw("log", "-1", "--format=%B", draftOfWeb), together(packaged("web", "amended")))
		}, pkgrepo.ErrNotOwn},
		"below": {"a commit of the program on top of somebody's takes nothing back", func(s *shop) {
			s.Commit(draftOfWeb, "an edit", edit)
			s.sync()
			s.one(write("web", "mine", "two"))
		}, pkgrepo.ErrNotOwn},
		"outside": {"files beside the package are work as well", func(s *shop) {
			s.Commit(draftOfWeb, s.Raw("log", "-1", "--format=%B", draftOfWeb), upstream.Text(map[string]string{"other/notes.txt": "more\n"}))
		}, pkgrepo.ErrNotOwn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.Commit("main", "begin", packaged("other"))
			s.one(write("web", "mine", "one"))
			tc.person(s)
			for range 2 {
				s.sync()
				r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Drop, Package: "web", Workspace: "mine"}})[0]
				if !errors.Is(r.Err, tc.want) || tc.want == nil && r.Err != nil {
					t.Fatalf("%s: %v", tc.reason, r.Err)
				}
				s.restart() // What is known is read from Git.
			}
			s.sync()
			s.one(pkgrepo.Change{Kind: pkgrepo.Drop, Package: "web", Workspace: "mine", Discard: true})
			if got := strings.Join(s.names(), " "); strings.Contains(got, draftOfWeb) {
				t.Errorf("the draft was not discarded: %s", got)
			}
		})
	}
}

// TestAPublishedCommitOfAPersonStaysReachable, also where the publication begins the branch. A change of the program's own leaves no
// trace of its draft.
func TestAPublishedCommitOfAPersonStaysReachable(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{true, false} {
		s := newShop(t, overHTTP)
		if begun {
			s.Commit("main", "begin", packaged("other"))
		}
		own := s.publish("api", "one")
		if parents := strings.Fields(s.Raw("log", "-1", "--format=%P", own.Commit)); len(parents) > 1 {
			t.Errorf("a change without anybody's commits is merged: %v", parents)
		}
		s.one(write("web", "mine", "one"))
		work := s.Commit(draftOfWeb, "an edit", upstream.Text(map[string]string{"web/notes.txt": "hours of work\n"}))
		s.sync()
		r := s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "web", Workspace: "mine", Expect: work})
		if got := s.Raw("for-each-ref", "--format=%(refname)", "--contains", work); !strings.Contains(got, "refs/heads/main") {
			t.Errorf("the commit is in %q", got)
		}
		files := s.Tree("main")
		if files["web/notes.txt"].Content != "hours of work\n" || begun && files["other/Kptfile"].Content == "" {
			t.Errorf("the branch has %v", files)
		}
		s.restart()
		if now := s.sync(); now.Package("web").Newest().Commit != r.Commit || len(now.Package("web").Open) != 0 {
			t.Errorf("%+v", now.Package("web"))
		}
		s.sound()
	}
}

// TestAPersonsFirstCommitBeginsTheBranch: there is no other history that it could be merged into.
func TestAPersonsFirstCommitBeginsTheBranch(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.one(write("web", "mine", "one"))
	work := s.Commit(draftOfWeb, "an edit", upstream.Text(map[string]string{"web/notes.txt": "hours of work\n"}))
	s.sync()
	s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "web", Workspace: "mine", Expect: work})
	if got := s.Raw("for-each-ref", "--format=%(refname)", "--contains", work); !strings.Contains(got, "refs/heads/main") {
		t.Errorf("the commit is in %q", got)
	}
}

// TestAProposalOfADeletionNamesItsVariant, in Git alone. One that people make names none.
func TestAProposalOfADeletionNamesItsVariant(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	published := s.publish("web", "one")
	propose := pkgrepo.Change{Kind: pkgrepo.ProposeDeletion, Package: "web", Revision: "v1", Expect: published.Commit}
	s.one(propose)
	if r := s.sync().Package("web").Newest(); r.Lifecycle != pkgrepo.DeletionProposed || r.Proposer != (pkgrepo.Proposer{}) {
		t.Errorf("%+v", r)
	}
	s.one(pkgrepo.Change{Kind: pkgrepo.RejectDeletion, Package: "web", Revision: "v1"})
	propose.Message = pkgrepo.Message{Variant: "team/web", UID: "1-2-3"}
	s.one(propose)
	for range 2 {
		if r := s.sync().Package("web").Newest(); r.Lifecycle != pkgrepo.DeletionProposed || r.Proposer != (pkgrepo.Proposer{Variant: "team/web", UID: "1-2-3"}) || r.Commit != published.Commit {
			t.Errorf("%+v", r)
		}
		s.restart()
	}
	s.sync()
	s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "web", Expect: published.Commit})
	if got := s.names(); len(got) != 2 {
		t.Errorf("the refs are %v", got)
	}
	s.sound()
}
