package pkgrepo_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// brief is what a test looks at of a revision.
type brief struct {
	Name, Workspace string
	Number          int
	Lifecycle       pkgrepo.Lifecycle
	Ref             string
	Known           bool // the facts
	Err             bool
}

func briefly(r pkgrepo.Revision) brief {
	return brief{r.Name, r.Workspace, r.Number, r.Lifecycle, r.Ref, r.Facts.Name != "", r.Err != nil}
}

func brieflyAll(all []pkgrepo.Revision) (briefs []brief) {
	for _, r := range all {
		briefs = append(briefs, briefly(r))
	}
	return briefs
}

func TestASnapshotHasWhatIsInGit(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overHTTP, overSSH} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, over)
			first := s.Commit("main", "v1", together(packaged("infra/web", "one"), packaged("db", "one"), upstream.Text(map[string]string{"README.md": "hello"})))
			second := s.Commit("main", "v2", packaged("infra/web", "two"))
			for i := 1; i <= 4; i++ {
				s.Tag("infra/web/v"+string(rune('0'+i)), first, i == 2)
			}
			s.Tag("infra/web/v10", second, false)
			s.Tag("infra/web/v1.2.0", second, false)
			s.Tag("infra/web/nightly", second, false)
			s.SetRef("refs/heads/drafts/infra/web/mine", second)
			s.SetRef("refs/heads/proposed/infra/web/yours", second)
			s.SetRef("refs/heads/deletionProposed/infra/web/v4", first)
			s.SetRef("refs/heads/drafts/new/fresh", s.Commit("other", "new", packaged("new")))
			got := s.sync()
			if got.Head != second || len(got.Packages) != 3 {
				t.Errorf("head %s, %d packages", got.Head, len(got.Packages))
			}
			web := got.Package("infra/web")
			tag := "refs/tags/infra/web/"
			want := []brief{
				{"v10", "", 10, pkgrepo.Published, tag + "v10", true, false},
				{"v4", "", 4, pkgrepo.DeletionProposed, tag + "v4", true, false},
				{"v3", "", 3, pkgrepo.Published, tag + "v3", true, false},
				{"v2", "", 2, pkgrepo.Published, tag + "v2", false, false},
				{"v1", "", 1, pkgrepo.Published, tag + "v1", false, false},
				{"v1.2.0", "", 0, pkgrepo.Published, tag + "v1.2.0", false, false},
			}
			if diff := cmp.Diff(want, brieflyAll(web.Published)); diff != "" {
				t.Error(diff)
			}
			want = []brief{
				{"", "mine", 0, pkgrepo.Draft, "refs/heads/drafts/infra/web/mine", true, false},
				{"", "yours", 0, pkgrepo.Proposed, "refs/heads/proposed/infra/web/yours", true, false},
			}
			if diff := cmp.Diff(want, brieflyAll(web.Open)); diff != "" {
				t.Error(diff)
			}
			if web.Published[3].Commit != first || web.Branch.Tree != s.at(second+":infra/web") || web.Branch.Name != "v10" || web.Next() != 11 {
				t.Errorf("%+v", web)
			}
			if fresh := got.Package("new"); fresh.Branch != nil || len(fresh.Open) != 1 || fresh.Open[0].Facts.Name != "new" {
				t.Errorf("%+v", fresh)
			}
			if db := got.Package("db"); db.Branch == nil || db.Branch.Facts.Name != "db" || db.Newest() != nil {
				t.Errorf("%+v", db)
			}
		})
	}
}

func TestWhatStandsStillCostsOneListing(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.Commit("main", "one", together(packaged("a"), packaged("b")))
	before := s.sync()
	s.server.Reset()
	again, moved, err := s.Sync(t.Context())
	if err != nil || moved || again != before {
		t.Errorf("moved %t, %v", moved, err)
	}
	if fetches, lists := s.server.Count(upstream.Fetch), s.server.Count(upstream.LsRefs); fetches != 0 || lists != 1 {
		t.Errorf("%d fetches, %d listings", fetches, lists)
	}
	s.server.Reset()
	s.Commit("main", "two", packaged("b", "new"))
	s.SetRef("refs/heads/drafts/a/mine", before.Head)
	if now, moved, err := s.Sync(t.Context()); err != nil || !moved || now.Package("a").Find("mine") == nil {
		t.Errorf("moved %t, %v", moved, err)
	}
	if fetches := s.server.Count(upstream.Fetch); fetches != 1 {
		t.Errorf("%d fetches", fetches)
	}
}

func TestOneBadPackageHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.options.MaxKptfileBytes = 1000 })
	blob := s.Object("blob", []byte("no commit"))
	odd := upstream.Text(map[string]string{
		"bad/Kptfile": "kind: [", "huge/Kptfile": kptfile("huge") + "# " + string(make([]byte, 2000)),
		"folder/Kptfile/x": "y", "a b/Kptfile": kptfile("x"), "odd\xff/Kptfile": kptfile("x"), "x/.hidden/Kptfile": kptfile("x"),
	})
	head := s.Commit("main", "all", together(packaged("good"), packaged("outer"), packaged("outer/inner", "1"), odd))
	s.Tag("gone/v1", head, false)
	s.Tag("good/v1", blob, false)
	s.Tag("good/v2", head, false)
	s.Tag("good/v2147483648", head, false)
	s.SetRef("refs/heads/drafts/nothing", head)
	s.SetRef("refs/heads/drafts/x/caf\xe9", head)
	s.Tag("outer/inner/v1", head, false)
	got := s.sync()
	for path, want := range map[string]struct{ branch, facts, isErr bool }{
		"good": {true, true, false}, "bad": {true, false, true}, "huge": {true, false, true}, "outer": {true, true, false},
		"outer/inner": {true, true, false}, "gone": {false, false, false},
	} {
		pkg := got.Package(path)
		if pkg == nil || (pkg.Branch != nil) != want.branch {
			t.Errorf("%s: %+v", path, pkg)
			continue
		}
		if want.branch && ((pkg.Branch.Facts.Name != "") != want.facts || (pkg.Branch.Err != nil) != want.isErr) {
			t.Errorf("%s: %+v", path, pkg.Branch)
		}
	}
	if err := got.Package("gone").Newest().Err; !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	good := got.Package("good").Published
	if len(good) != 2 || good[0].Err != nil || good[1].Err == nil {
		t.Errorf("%+v", good)
	}
	for cause, want := range map[pkgrepo.Cause]int{pkgrepo.Unsafe: 5, pkgrepo.Unreadable: 3, pkgrepo.OfNoPackage: 1} {
		if p := got.Problems[cause]; p.Count != want {
			t.Errorf("%s: %d, want %d: %q", cause, p.Count, want, p.Names)
		}
	}
	if len(got.Packages) != 6 {
		t.Errorf("%d packages", len(got.Packages))
	}
}

// TestRevisionsOfPorchAreUnderstood: they tell their workspace in another line.
func TestRevisionsOfPorchAreUnderstood(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.settings.Directory = "config" })
	note := "Approve\n\nkpt:{\"package\":\"config/web\",\"workspaceName\":\"packagevariant-7\",\"revision\":1}\n"
	head := s.Commit("main", note, packaged("config/web", "one"))
	s.Tag("config/web/v1", head, false)
	s.Tag("config/db/v1", s.Commit("main", note, packaged("config/db", "one")), false)
	got := s.sync()
	if web := got.Package("web"); web.Newest().Workspace != "packagevariant-7" || web.NextWorkspace() != "packagevariant-8" {
		t.Errorf("%+v", web.Newest())
	}
	if db := got.Package("db"); db.Newest().Workspace != "" {
		t.Errorf("the note is about another package: %+v", db.Newest())
	}
}
