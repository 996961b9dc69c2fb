package pkgrepo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestAChangeHasItsFolderAlone: a change that has more is neither proposed nor published, and one that merely has what came to the branch
// is.
func TestAChangeHasItsFolderAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		// edit makes the tip of a person's change, on one of the program.
		edit func(s *shop, draft string) (tip string)
		want string
	}{
		"inside": {"It changes the package.", func(s *shop, draft string) string {
			return s.person(draft, "app/b.yaml", "b\n")
		}, ""},
		"beside": {"It has a file more.", func(s *shop, draft string) string {
			return s.person(draft, "shared/b.yaml", "b\n")
		}, "shared/b.yaml (1 in all)"},
		"removed": {"It lacks a file.", func(s *shop, draft string) string {
			return s.person(draft, "other/file0.yaml", "")
		}, "other/file0.yaml (1 in all)"},
		"a name that begins alike": {"It is another folder.", func(s *shop, draft string) string {
			return s.person(draft, "app-2/b.yaml", "b\n")
		}, "app-2/b.yaml (1 in all)"},
		"in an inner package": {"That has its own changes.", func(s *shop, draft string) string {
			return s.person(draft, "app/in/b.yaml", "b\n")
		}, "app/in/b.yaml (1 in all)"},
		"many": {"The first twenty are named.", func(s *shop, draft string) string {
			for i := range 25 {
				draft = s.person(draft, fmt.Sprintf("shared/%02d", i), "b\n")
			}
			return draft
		}, "shared/19 (25 in all)"},
		"taken back": {"Nothing is left of it.", func(s *shop, draft string) string {
			return s.person(s.person(draft, "shared/b.yaml", "b\n"), "shared/b.yaml", "")
		}, ""},
		"merged": {"The branch was merged into it.", func(s *shop, draft string) string {
			head := s.Commit("main", "by others", packaged("other", "new", "more"))
			return s.CommitTree(s.at(s.person(head, "app/Kptfile", kptfile("app"))+"^{tree}"), "merge", draft, head)
		}, ""},
		"merged, and more": {"The branch was merged into it, with something else.", func(s *shop, draft string) string {
			head := s.Commit("main", "by others", packaged("other", "new", "more"))
			with := s.person(s.person(head, "app/Kptfile", kptfile("app")), "shared/b.yaml", "b\n")
			return s.CommitTree(s.at(with+"^{tree}"), "merge", draft, head)
		}, "shared/b.yaml (1 in all)"},
		"of its own": {"It has nothing in common with the branch.", func(s *shop, _ string) string {
			return s.CommitTree(s.at(s.Rewrite("scratch", "alone", packaged("app"))+"^{tree}"), "alone")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.Tag("app/in/v1", s.Commit("main", "begin", together(packaged("other", "old"), packaged("app/in"))), false)
			draft := s.one(write("app", "mine", "one"))
			tip := c.edit(s, draft.Commit)
			s.SetRef("refs/heads/drafts/app/mine", tip)
			s.SetRef("refs/heads/proposed/app/theirs", tip)
			results := s.Apply(t.Context(), []pkgrepo.Change{
				{Kind: pkgrepo.Propose, Package: "app", Workspace: "mine", Expect: tip},
				{Kind: pkgrepo.Publish, Package: "app", Workspace: "theirs", Expect: tip},
			})
			for i, r := range results {
				switch {
				case c.want == "" && r.Err != nil:
					t.Errorf("%d: %s got %v", i, c.reason, r.Err)
				case c.want != "" && (!errors.Is(r.Err, pkgrepo.ErrOutside) || !strings.Contains(r.Err.Error(), c.want)):
					t.Errorf("%d: %s got %v", i, c.reason, r.Err)
				}
			}
		})
	}
}

// person makes a commit on another one, of one file that changes or, without content, goes.
func (s *shop) person(on, path, content string) string {
	s.t.Helper()
	files := s.Tree(on)
	if files[path] = (upstream.File{Content: content}); content == "" {
		delete(files, path)
	}
	return s.CommitTree(s.at(s.Rewrite(fmt.Sprintf("scratch-%s", on[:8]), "files", files)+"^{tree}"), "by a person", on)
}
