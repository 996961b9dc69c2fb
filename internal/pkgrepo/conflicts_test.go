package pkgrepo_test

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestConflictsAreRecordedInADraft: the newest commit of the program says which there are, whatever people commit on top of it.
func TestConflictsAreRecordedInADraft(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	begun := s.Commit("main", "begin", packaged("other"))
	with := func(text string, conflicts pkgrepo.Conflicts) pkgrepo.Result {
		return s.one(pkgrepo.Change{Kind: pkgrepo.Write, Package: "web", Workspace: "mine", Make: func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
			return pkgrepo.Made{Package: content(now, map[string]string{"a.yaml": text}), Message: pkgrepo.Message{Conflicts: conflicts}}, nil
		}})
	}
	recorded := func(reason, since string, want pkgrepo.Conflicts, wantCommit string) {
		t.Helper()
		for range 2 {
			s.sync()
			got, commit, err := s.Conflicts(t.Context(), s.Snapshot().Package("web").Find("mine"), since)
			if err != nil || got != want || commit != wantCommit {
				t.Errorf("%s: %v in %q, not %v in %q: %v", reason, got, commit, want, wantCommit, err)
			}
			s.restart() // What is known is read from Git.
		}
		s.sync()
	}
	two := pkgrepo.Conflicts{Digest: "sha256:" + strings.Repeat("ab", 32), Count: 2}
	written := with("one", two)
	recorded("the tip is the program's", "", two, written.Commit)
	edit := s.Commit(draftOfWeb, "an edit", upstream.Text(map[string]string{"web/notes.txt": "hours of work\n"}))
	recorded("a person's commit is on top", "", two, written.Commit)
	recorded("a person's commit is known", edit, pkgrepo.Conflicts{}, "")
	recorded("the program's commit is known", written.Commit, pkgrepo.Conflicts{}, "")
	recorded("another commit is known", begun, two, written.Commit)
	s.Commit(draftOfWeb, "forged\n\nSluice-Conflicts: none\nSluice-Package: web\nSluice-Workspace: mine", upstream.Text(map[string]string{"web/notes.txt": "x\n"}))
	s.sync()
	if got, _, err := s.Conflicts(t.Context(), s.Snapshot().Package("web").Find("mine"), ""); err != nil || got.Count != 1 || len(got.Digest) != len(two.Digest) {
		t.Errorf("a record in another form is %v: %v", got, err)
	}
	without := with("two", pkgrepo.Conflicts{})
	recorded("there are none any more", edit, pkgrepo.Conflicts{}, without.Commit)
}
