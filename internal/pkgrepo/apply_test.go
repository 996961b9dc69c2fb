package pkgrepo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

func TestAPackageGoesFromDraftToPublishedAndAway(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]string{"HTTP": overHTTP, "SSH": overSSH} {
		for _, start := range []string{"an empty repository", "another branch", "the branch"} {
			t.Run(name+" with "+start, func(t *testing.T) {
				t.Parallel()
				s := newShop(t, over, func(s *shop) { s.settings.Directory = "config" })
				switch start {
				case "another branch":
					s.Commit("other", "first", upstream.Text(map[string]string{"README.md": "hello"}))
				case "the branch":
					s.Commit("main", "first", upstream.Text(map[string]string{"README.md": "hello"}))
				}
				walkThrough(t, s)
			})
		}
	}
}

func walkThrough(t *testing.T, s *shop) {
	t.Helper()
	draft := s.one(write("web", "", "one"))
	if draft.Workspace != "packagevariant-1" || s.at("refs/heads/drafts/config/web/packagevariant-1") != draft.Commit || !draft.Changed {
		t.Errorf("%+v", draft)
	}
	again := s.one(write("web", "packagevariant-1", "one"))
	if again.Changed || again.Commit != draft.Commit {
		t.Errorf("%+v", again)
	}
	second := s.one(write("web", "packagevariant-1", "two"))
	if s.at(second.Commit+"^") != draft.Commit {
		t.Error("a later commit does not stand on the draft")
	}
	change := pkgrepo.Change{Kind: pkgrepo.Propose, Package: "web", Workspace: "packagevariant-1", Expect: second.Commit}
	for range 2 {
		if r := s.one(change); r.Commit != second.Commit {
			t.Errorf("%+v", r)
		}
	}
	if r := s.Apply(t.Context(), []pkgrepo.Change{write("web", "packagevariant-1", "three")}); !errors.Is(r[0].Err, pkgrepo.ErrProposed) {
		t.Error(r[0].Err)
	}
	change.Kind = pkgrepo.Publish
	published := s.one(change)
	if published.Number != 1 || s.at("refs/heads/main") != published.Commit || s.at("refs/tags/config/web/v1") != published.Commit {
		t.Errorf("%+v", published)
	}
	if got := s.Tree(published.Commit)["config/web/a.yaml"].Content; got != "two" {
		t.Error(got)
	}
	for range 2 {
		if r := s.one(change); r.Commit != published.Commit || r.Number != 1 || r.Changed {
			t.Errorf("%+v", r)
		}
	}
	revision := s.Snapshot().Package("web").Newest()
	if revision.Source != second.Commit || revision.Workspace != "packagevariant-1" || revision.Facts.Name != "made" {
		t.Errorf("%+v", revision)
	}
	if next := s.Snapshot().Package("web").NextWorkspace(); next != "packagevariant-2" {
		t.Error(next)
	}
	remove := pkgrepo.Change{Kind: pkgrepo.ProposeDeletion, Package: "web", Expect: published.Commit}
	for _, kind := range []pkgrepo.Kind{pkgrepo.ProposeDeletion, pkgrepo.RejectDeletion, pkgrepo.RejectDeletion, pkgrepo.ProposeDeletion, pkgrepo.ProposeDeletion} {
		remove.Kind = kind
		s.one(remove)
		if got := s.Snapshot().Package("web").Newest().Lifecycle == pkgrepo.DeletionProposed; got != (kind == pkgrepo.ProposeDeletion) {
			t.Errorf("%s: %t", kind, got)
		}
	}
	remove.Kind = pkgrepo.Remove
	for range 2 {
		s.one(remove)
	}
	if pkg := s.Snapshot().Package("web"); pkg.Branch != nil || pkg.Newest().Lifecycle != pkgrepo.Published || len(pkg.Open) != 0 {
		t.Errorf("%+v", pkg)
	}
	if again := s.publish("web", "four"); again.Number != 2 {
		t.Errorf("%+v", again)
	}
	before := s.Snapshot()
	s.restart()
	if diff := cmp.Diff(describe(before), describe(s.sync())); diff != "" {
		t.Error(diff)
	}
	s.sound()
}

// describe is what a snapshot tells, without why things went wrong.
func describe(s *pkgrepo.Snapshot) map[string]any {
	all := map[string]any{"head": s.Head}
	for path, pkg := range s.Packages {
		all[path+" open"], all[path+" published"] = brieflyAll(pkg.Open), brieflyAll(pkg.Published)
		if pkg.Branch != nil {
			all[path] = briefly(*pkg.Branch)
		}
	}
	return all
}

func TestARoundIsOneFetchAndTwoPushes(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	first := s.Commit("main", "first", upstream.Text(map[string]string{"README.md": "hello"}))
	var round []pkgrepo.Change
	for _, pkg := range []string{"a", "b", "c"} {
		round = append(round, write(pkg, "", pkg))
	}
	drafts := s.apply(round...)
	s.server.Reset()
	round = []pkgrepo.Change{write("d", "", "d"), write("a", "packagevariant-1", "new")}
	for i, pkg := range []string{"b", "c"} {
		round = append(round, pkgrepo.Change{Kind: pkgrepo.Publish, Package: pkg, Workspace: "packagevariant-1", Expect: drafts[i+1].Commit})
	}
	results := s.apply(round...)
	pushes, fetches, lists := s.server.Count(upstream.Push), s.server.Count(upstream.Fetch), s.server.Count(upstream.LsRefs)
	if pushes != 2 || fetches > 1 || lists != 1 {
		t.Errorf("%d pushes, %d fetches, %d listings", pushes, fetches, lists)
	}
	parents := map[string][2]string{
		"the first publication stands on the branch": {results[2].Commit, first}, "the second one on it": {results[3].Commit, results[2].Commit},
		"a new draft stands on what was published in the same round": {results[0].Commit, results[3].Commit},
		"an edit stands on the draft":                                {results[1].Commit, drafts[0].Commit},
	}
	for what, want := range parents {
		if got := s.Raw("rev-list", "--parents", "--max-count=1", want[0]); got != want[0]+" "+want[1] {
			t.Errorf("%s: commit and parents are %s, not %s", what, got, want)
		}
	}
	if head := s.at("main"); head != results[3].Commit {
		t.Errorf("the branch is at %s, not at the second publication, %s", head, results[3].Commit)
	}
	s.server.Reset()
	if again, moved, err := s.Sync(t.Context()); err != nil || moved || s.server.Count(upstream.Fetch) != 0 {
		t.Errorf("%v, moved %t, %v", again, moved, err)
	}
	s.sound()
}

// TestAThousandPackagesAreOnePush to draft them, and one to publish them, a commit each.
func TestAThousandPackagesAreOnePush(t *testing.T) {
	t.Parallel()
	const packages = 1000
	s := newShop(t, overHTTP)
	first := s.Commit("main", "first", upstream.Text(map[string]string{"README.md": "hello"}))
	round := make([]pkgrepo.Change, packages)
	for i := range round {
		round[i] = write(fmt.Sprintf("p%d", i), "mine", fmt.Sprint(i))
	}
	drafts := s.apply(round...)
	once := func(what string) {
		t.Helper()
		pushes, fetches, lists := s.server.Count(upstream.Push), s.server.Count(upstream.Fetch), s.server.Count(upstream.LsRefs)
		if pushes != 1 || fetches > 1 || lists != 1 {
			t.Errorf("%s: %d pushes, %d fetches, %d listings", what, pushes, fetches, lists)
		}
		s.server.Reset()
	}
	once("to draft")
	for i := range round {
		round[i].Kind, round[i].Expect = pkgrepo.Publish, drafts[i].Commit
	}
	last := s.apply(round...)[packages-1]
	once("to publish")
	if head := s.at("main"); head != last.Commit || s.at("main~1000") != first {
		t.Errorf("the branch is at %s, not %d commits on from %s at %s", head, packages, first, last.Commit)
	}
	if refs := len(s.refs()); refs != packages+1 {
		t.Errorf("there are %d refs, not the branch and a tag each", refs)
	}
	s.sound()
}

func TestWhatIsNotAsExpectedIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.publish("web", "one")
	draft := s.one(write("web", "mine", "two"))
	other := s.one(write("db", "mine", "db"))
	refs := s.refs()
	change := func(kind pkgrepo.Kind, pkg, workspace, expect string) pkgrepo.Change {
		c := write(pkg, workspace, "new")
		c.Kind, c.Expect = kind, expect
		return c
	}
	for name, tc := range map[string]struct {
		change pkgrepo.Change
		want   error
	}{
		"Write to another tip":      {change(pkgrepo.Write, "web", "mine", other.Commit), pkgrepo.ErrMoved},
		"Write to what is gone":     {change(pkgrepo.Write, "web", "none", other.Commit), pkgrepo.ErrGone},
		"Propose another tip":       {change(pkgrepo.Propose, "web", "mine", other.Commit), pkgrepo.ErrMoved},
		"Propose nothing":           {change(pkgrepo.Propose, "web", "none", ""), pkgrepo.ErrGone},
		"Reject nothing":            {change(pkgrepo.Reject, "none", "none", ""), pkgrepo.ErrGone},
		"Publish another tip":       {change(pkgrepo.Publish, "web", "mine", other.Commit), pkgrepo.ErrMoved},
		"Publish without approval":  {change(pkgrepo.Publish, "web", "mine", ""), pkgrepo.ErrMoved},
		"Publish nothing":           {change(pkgrepo.Publish, "web", "none", draft.Commit), pkgrepo.ErrGone},
		"Drop another tip":          {change(pkgrepo.Drop, "web", "mine", other.Commit), pkgrepo.ErrMoved},
		"Mark what is gone":         {change(pkgrepo.ProposeDeletion, "db", "", ""), pkgrepo.ErrGone},
		"Mark another commit":       {change(pkgrepo.ProposeDeletion, "web", "", other.Commit), pkgrepo.ErrMoved},
		"Remove another commit":     {change(pkgrepo.Remove, "web", "", other.Commit), pkgrepo.ErrMoved},
		"Remove nothing":            {change(pkgrepo.Remove, "db", "", other.Commit), pkgrepo.ErrGone},
		"A name with dots":          {change(pkgrepo.Write, "../web", "mine", ""), pkgrepo.ErrName},
		"A name with a line":        {change(pkgrepo.Write, "web\nx", "mine", ""), pkgrepo.ErrName},
		"A workspace with a slash":  {change(pkgrepo.Write, "web", "a/b", ""), pkgrepo.ErrName},
		"A workspace that is empty": {change(pkgrepo.Drop, "web", "", ""), pkgrepo.ErrName},
	} {
		t.Run(name, func(t *testing.T) {
			if r := s.Apply(t.Context(), []pkgrepo.Change{tc.change})[0]; !errors.Is(r.Err, tc.want) {
				t.Errorf("got %v, want %v", r.Err, tc.want)
			}
		})
	}
	if diff := cmp.Diff(refs, s.refs()); diff != "" {
		t.Error(diff)
	}
	if r := s.one(change(pkgrepo.Drop, "web", "none", "")); r.Changed {
		t.Errorf("%+v", r)
	}
	s.one(change(pkgrepo.Drop, "web", "mine", draft.Commit))
	if s.Snapshot().Package("web").Find("mine") != nil {
		t.Error("the draft is still there")
	}
}

func TestWhatWasBegunOnAnotherStateIsOutOfDate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		begin  func(s *shop) (commit string)
		moves  func(s *shop)
		want   error
	}{
		"Nothing moved": {
			"the annotation names the tree on the branch",
			func(s *shop) string { return s.one(write("web", "mine", "two")).Commit }, func(*shop) {}, nil,
		},
		"Another package moved": {
			"a package's tree is compared, not the branch",
			func(s *shop) string { return s.one(write("web", "mine", "two")).Commit },
			func(s *shop) { s.Commit("main", "other", packaged("db")) }, nil,
		},
		"The package moved": {
			"what came in between would be lost",
			func(s *shop) string { return s.one(write("web", "mine", "two")).Commit },
			func(s *shop) { s.Commit("main", "edit", upstream.Text(map[string]string{"web/a.yaml": "by hand"})) }, pkgrepo.ErrOutOfDate,
		},
		"The package went": {
			"what was removed would come back",
			func(s *shop) string { return s.one(write("web", "mine", "two")).Commit },
			func(s *shop) { s.Commit("main", "gone", upstream.Files{"web": {Mode: upstream.Removed}}) }, pkgrepo.ErrOutOfDate,
		},
		"By hand, on the branch": {
			"whoever begins a branch on the head has seen what is there",
			func(s *shop) string {
				s.SetRef("refs/heads/drafts/web/mine", s.at("main"))
				return s.Commit("drafts/web/mine", "edit", upstream.Text(map[string]string{"web/a.yaml": "two"}))
			}, func(*shop) {}, nil,
		},
		"By hand, before another": {
			"nobody has seen what came later",
			func(s *shop) string {
				s.SetRef("refs/heads/drafts/web/mine", s.at("main"))
				return s.Commit("drafts/web/mine", "edit", upstream.Text(map[string]string{"web/a.yaml": "two"}))
			},
			func(s *shop) { s.Commit("main", "edit", upstream.Text(map[string]string{"web/a.yaml": "by hand"})) }, pkgrepo.ErrOutOfDate,
		},
		"By hand, merged": {
			"who has merged the branch has seen it",
			func(s *shop) string {
				s.SetRef("refs/heads/drafts/web/mine", s.at("main"))
				s.Commit("main", "edit", upstream.Text(map[string]string{"web/b.yaml": "by hand"}))
				s.SetRef("refs/heads/drafts/web/mine", s.at("main"))
				return s.Commit("drafts/web/mine", "edit", upstream.Text(map[string]string{"web/a.yaml": "two"}))
			}, func(*shop) {}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.publish("web", "one")
			commit := tc.begin(s)
			tc.moves(s)
			before := s.at("main")
			r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "web", Workspace: "mine", Expect: commit}})[0]
			if !errors.Is(r.Err, tc.want) || tc.want == nil && r.Err != nil {
				t.Fatalf("%s: %v", tc.reason, r.Err)
			}
			if tc.want != nil {
				if s.at("main") != before {
					t.Error("the branch moved")
				}
				return
			}
			if got := s.Tree("main")["web/a.yaml"].Content; got != "two" || r.Number != 2 {
				t.Errorf("%q, %+v", got, r)
			}
		})
	}
}

func TestALostRaceIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.publish("web", "one")
	s.one(write("db", "mine", "one"))
	made := 0
	change := write("db", "mine", "")
	change.Make = func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
		if made++; made == 1 {
			s.Commit("drafts/db/mine", "by hand", upstream.Text(map[string]string{"db/theirs.yaml": "theirs"}))
		}
		pkg := content(now, map[string]string{"a.yaml": "two"})
		if theirs, ok := now.Local["theirs.yaml"]; ok {
			pkg["theirs.yaml"] = theirs
		}
		return pkgrepo.Made{Package: pkg}, nil
	}
	r := s.one(change)
	if files := s.Tree(r.Commit); files["db/theirs.yaml"].Content != "theirs" || files["db/a.yaml"].Content != "two" || made != 2 {
		t.Errorf("made %d times: %v", made, files)
	}
	draft := s.one(write("web", "mine", "two"))
	moves := 0
	s.server.Before(upstream.Push, func() {
		if moves++; moves < 3 {
			s.Commit("main", "by hand", packaged("other", string(rune('0'+moves))))
		}
	})
	if r := s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "web", Workspace: "mine", Expect: draft.Commit}); r.Number != 2 || moves != 3 {
		t.Errorf("%+v after %d pushes", r, moves)
	}
	draft = s.one(write("web", "mine", "three"))
	s.server.Before(upstream.Push, func() {
		moves++
		s.Commit("main", "by hand", packaged("other", string(rune('0'+moves))))
	})
	r = s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "web", Workspace: "mine", Expect: draft.Commit}})[0]
	if !errors.Is(r.Err, git.ErrRefMoved) {
		t.Error(r.Err)
	}
	s.server.Before(upstream.Push, nil)
	s.sound()
}

func TestOneBadChangeHarmsNoOther(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]struct{ name, script string }{
		"A hook for each ref": {"update", `case "$1" in *bad*) echo "not this one" >&2; exit 1;; esac`},
		"A hook for all":      {"pre-receive", `while read old new ref; do case "$ref" in *bad*) echo "not this one" >&2; exit 1;; esac; done`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.publish("base", "one")
			broken := errors.New("broken")
			drafts := s.apply(write("a", "x", "1"), write("b", "x", "1"), write("bad", "x", "1"), write("c", "x", "1"))
			s.Hook(hook.name, hook.script)
			failing := write("e", "x", "")
			failing.Make = func(context.Context, pkgrepo.Current) (pkgrepo.Made, error) { return pkgrepo.Made{}, broken }
			round := []pkgrepo.Change{write("d", "x", "1"), write("bad", "y", "1"), failing, write("f", "x", "1")}
			for i, pkg := range []string{"a", "b", "bad", "c"} {
				kind := pkgrepo.Publish
				if pkg == "b" {
					kind = pkgrepo.Propose
				}
				round = append(round, pkgrepo.Change{Kind: kind, Package: pkg, Workspace: "x", Expect: drafts[i].Commit})
			}
			want := []error{nil, git.ErrRejected, broken, nil, nil, nil, git.ErrRejected, nil}
			for i, r := range s.Apply(t.Context(), round) {
				if !errors.Is(r.Err, want[i]) || want[i] == nil && r.Err != nil {
					t.Errorf("%s %s: %v", round[i].Kind, round[i].Package, r.Err)
				}
				if want[i] == git.ErrRejected && !strings.Contains(r.Err.Error(), "not this one") { //nolint:errorlint // It is the one of the table.
					t.Errorf("the server's words are missing: %v", r.Err)
				}
			}
			if s.Snapshot().Package("a").Newest() == nil || s.Snapshot().Package("c").Newest() == nil || s.Snapshot().Package("bad").Newest() != nil {
				t.Error(s.names())
			}
			s.sound()
		})
	}
}

func TestMessagesCannotBeForged(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	forged := "good\n\nSluice-Package: other\nSluice-Change: x"
	change := write("web", "mine", "one")
	change.Make = func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
		return pkgrepo.Made{Package: content(now, nil), Message: pkgrepo.Message{
			Subject: forged, Body: "text\nSluice-Package: other\n\n\n\x1b[31m\r\nlast\n\nSluice-Revision: v9", Variant: forged, Upstream: "repo pkg v1", Config: "sha256:abc",
		}}, nil
	}
	draft := s.one(change)
	want := "Sluice-Variant: good\\n\\nSluice-Package: other\\nSluice-Change: x\nSluice-Upstream: repo pkg v1\nSluice-Config: sha256:abc\nSluice-Package: web\nSluice-Workspace: mine\nSluice-Tree: " + s.at(draft.Commit+"^{tree}")
	if diff := cmp.Diff(want, s.Raw("log", "-1", "--format=%(trailers)", draft.Commit)); diff != "" {
		t.Error(diff)
	}
	published := s.one(pkgrepo.Change{
		Kind: pkgrepo.Publish, Package: "web", Workspace: "mine", Expect: draft.Commit, Message: pkgrepo.Message{Subject: forged},
	})
	want = "Sluice-Package: web\nSluice-Revision: v1\nSluice-Workspace: mine\nSluice-Change: " + draft.Commit + "\nkpt:{\"package\":\"web\",\"workspaceName\":\"mine\"}"
	if diff := cmp.Diff(want, s.Raw("log", "-1", "--format=%(trailers)", published.Commit)); diff != "" {
		t.Error(diff)
	}
	if subject := s.Raw("log", "-1", "--format=%s", published.Commit); !strings.HasPrefix(subject, "good\\n") {
		t.Error(subject)
	}
}
