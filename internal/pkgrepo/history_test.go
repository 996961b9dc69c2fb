package pkgrepo_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// keeping is a history of so many revisions of which nobody needs any.
func keeping(revisions int) pkgrepo.History {
	return pkgrepo.History{Revisions: revisions, Needed: func(string, string) bool { return false }}
}

// leftovers are those of the history.
func (s *shop) leftovers(h pkgrepo.History) []pkgrepo.Leftover {
	s.t.Helper()
	found, err := s.Leftovers(s.t.Context(), h)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// prune removes them, with other changes.
func (s *shop) prune(h pkgrepo.History, with ...pkgrepo.Change) []pkgrepo.Leftover {
	s.t.Helper()
	results := s.apply(append(with, pkgrepo.Change{Kind: pkgrepo.Prune, Leftovers: s.leftovers(h)})...)
	return results[len(results)-1].Gone
}

// tags are the short names of the repository's.
func (s *shop) tags() []string {
	s.t.Helper()
	return strings.Fields(s.Raw("for-each-ref", "--sort=v:refname", "--format=%(refname:lstrip=2)", "refs/tags"))
}

// branched gives a repository the package a with so many published revisions, made by the git program in one go.
func branched(s *shop, revisions int) {
	s.t.Helper()
	const pkg = "a"
	var stream strings.Builder
	for n := 1; n <= revisions; n++ {
		message := fmt.Sprintf("Publish %s v%d\n\nSluice-Package: %s\nSluice-Revision: v%d\n", pkg, n, pkg, n)
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Sluice <sluice@shop.example> %d +0000\ndata %d\n%s", 1_700_000_000+n, len(message), message)
		for name, text := range map[string]string{"Kptfile": kptfile(pkg), "a.yaml": fmt.Sprintf("n: %d\n", n)} {
			fmt.Fprintf(&stream, "M 100644 inline %s/%s\ndata %d\n%s\n", pkg, name, len(text), text)
		}
		fmt.Fprintf(&stream, "\nreset refs/tags/%s/v%d\nfrom refs/heads/main\n\n", pkg, n)
	}
	if _, err := s.RawInput([]byte(stream.String()), "fast-import", "--quiet"); err != nil {
		s.t.Fatal(err)
	}
}

// TestTagsAreBoundedByHistory: of 1,000 revisions as many tags stay as are wanted, and publishing goes on with the next number.
func TestTagsAreBoundedByHistory(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	branched(s, 1000)
	s.sync()
	h := keeping(10)
	for rounds := 0; ; rounds++ {
		before := s.server.Count(upstream.Push)
		gone := s.prune(h)
		if pushes := s.server.Count(upstream.Push) - before; len(gone) > pkgrepo.MaxLeftovers || pushes > 1 {
			t.Fatalf("%d tags in %d pushes", len(gone), pushes)
		}
		if len(gone) == 0 {
			if rounds != 10 {
				t.Errorf("it took %d rounds", rounds)
			}
			break
		}
	}
	var want []string
	for n := 991; n <= 1000; n++ {
		want = append(want, fmt.Sprintf("a/v%d", n))
	}
	if diff := cmp.Diff(want, s.tags()); diff != "" {
		t.Error(diff)
	}
	asked := s.server.Count(upstream.Fetch)
	if s.leftovers(h); s.server.Count(upstream.Fetch) != asked {
		t.Error("the repository was asked though nothing is over")
	}
	for range 5 {
		draft := s.one(write("a", "", "next"+fmt.Sprint(s.Snapshot().Package("a").Next())))
		before := s.server.Count(upstream.Push)
		s.prune(h, pkgrepo.Change{Kind: pkgrepo.Publish, Package: "a", Workspace: draft.Workspace, Expect: draft.Commit})
		if pushes := s.server.Count(upstream.Push) - before; pushes != 1 || len(s.tags()) > 11 {
			t.Errorf("%d pushes, tags %v", pushes, s.tags())
		}
	}
	s.restart()
	s.sync()
	if s.prune(h); len(s.names()) != 11 || s.Snapshot().Package("a").Newest().Number != 1005 {
		t.Errorf("%v", s.names())
	}
	s.sound()
}

// TestOfThoseThatAreOldSomeStay: each tag that is not to go, beside one that is.
func TestOfThoseThatAreOldSomeStay(t *testing.T) {
	t.Parallel()
	nothing := func(*shop) {}
	cases := map[string]struct {
		reason string
		do     func(*shop)
		h      pkgrepo.History
		want   []string
	}{
		"no history":     {"nothing is removed that nobody asked to have removed", nothing, keeping(0), nil},
		"few":            {"what is shown as objects stays", nothing, keeping(1), []string{"a/v1", "a/v2", "a/v3"}},
		"a name":         {"somebody names the tag", nothing, pkgrepo.History{Revisions: 3, Needed: func(tag, _ string) bool { return tag == "a/v2" }}, []string{"a/v1", "a/v3"}},
		"moved by hand":  {"it leads to what was published under another name", func(s *shop) { s.SetRef("refs/tags/a/v2", s.at("a/v3")) }, keeping(3), []string{"a/v1", "a/v3"}},
		"made by hand":   {"its commit does not say that it was published", func(s *shop) { s.Raw("tag", "a/v7", s.Commit("main", "by hand", packaged("a", "x"))) }, keeping(4), []string{"a/v1", "a/v2", "a/v3"}},
		"with a message": {"it was signed or described by a person", func(s *shop) { s.Raw("tag", "-f", "-a", "-m", "words", "a/v2", "a/v2") }, keeping(3), []string{"a/v1", "a/v3"}},
		"marked":         {"somebody is asked whether it is to be deleted", func(s *shop) { s.one(pkgrepo.Change{Kind: pkgrepo.ProposeDeletion, Package: "a", Revision: "v2"}) }, keeping(3), []string{"a/v1", "a/v3"}},
		"off the branch": {"its commit would be lost with it", func(s *shop) { s.SetRef("refs/heads/main", s.Commit("other", "anew", packaged("a", "x"))) }, keeping(3), nil},
		"a gone package": {"its numbers are not to be used twice", func(s *shop) { s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "a", Expect: s.at("a/v6")}) }, keeping(3), []string{"a/v1", "a/v2", "a/v3"}},
		"of other kinds": {"versions are people's", func(s *shop) {
			s.Raw("tag", "a/v1.2.0", "a/v1")
			s.Raw("tag", "v1", "a/v1")
			s.Raw("tag", "b/a/v1", "a/v1")
		}, keeping(3), []string{"a/v1", "a/v2", "a/v3"}},
		"another's words": {"a commit says what it published, and is not believed of another package", func(s *shop) {
			s.Raw("tag", "b/v1", "a/v1")
			s.Raw("tag", "b/v2", "a/v2")
			s.Raw("tag", "b/v3", "a/v3")
			s.Raw("tag", "b/v4", "a/v4")
		}, keeping(3), []string{"a/v1", "a/v2", "a/v3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			branched(s, 6)
			s.sync()
			tc.do(s)
			s.sync()
			before := s.refs()
			var got []string
			for _, one := range s.prune(tc.h) {
				got = append(got, strings.TrimPrefix(one.Ref, "refs/tags/"))
				delete(before, one.Ref)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, s.refs()); diff != "" {
				t.Errorf("other refs have moved: %s", diff)
			}
		})
	}
}

// TestAHandIsQuickerThanPruning: a tag that was moved since it was seen stays where it is, and publishing does not wait for that.
func TestAHandIsQuickerThanPruning(t *testing.T) {
	t.Parallel()
	for _, atomic := range []bool{true, false} {
		t.Run(fmt.Sprint("atomic ", atomic), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			if !atomic {
				withoutAtomic(s)
			}
			branched(s, 6)
			s.sync()
			draft := s.one(write("a", "mine", "two"))
			over := s.leftovers(keeping(3))
			s.SetRef("refs/tags/a/v2", s.at("a/v6"))
			s.Raw("tag", "-d", "a/v3")
			results := s.apply(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "a", Workspace: "mine", Expect: draft.Commit}, pkgrepo.Change{Kind: pkgrepo.Prune, Leftovers: over})
			if results[0].Number != 7 || len(results[1].Gone) == 0 || s.at("a/v2") != s.at("a/v6") {
				t.Errorf("%+v", results)
			}
			if diff := cmp.Diff([]string{"a/v2", "a/v4", "a/v5", "a/v6", "a/v7"}, s.tags()); diff != "" {
				t.Error(diff)
			}
			if refused := s.Refused(); len(refused) != 0 {
				t.Errorf("%v", refused)
			}
		})
	}
}

// TestProtectedTagsStopNothing: what is published is published, other tags go, and what a server keeps is told, and asked for again
// an hour later.
func TestProtectedTagsStopNothing(t *testing.T) {
	t.Parallel()
	const each = `case "$1 $3" in refs/tags/a/v2\ 0000*) echo "v2 is protected" >&2; exit 1;; esac`
	const all = `while read old new ref; do case "$ref $new" in refs/tags/a/v2\ 0000*) echo "v2 is protected" >&2; exit 1;; esac; done`
	for name, tc := range map[string]struct {
		hook, script string
		atomic       bool
	}{
		"each by itself":                 {"update", each, true},
		"each by itself, without atomic": {"update", each, false},
		"all at once":                    {"pre-receive", all, true},
		"all at once, without atomic":    {"pre-receive", all, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			s := newShop(t, overHTTP, func(s *shop) { s.options.Clock = clock })
			if !tc.atomic {
				withoutAtomic(s)
			}
			branched(s, 6)
			s.sync()
			s.Hook(tc.hook, tc.script)
			draft := s.one(write("a", "mine", "two"))
			gone := s.prune(keeping(3), pkgrepo.Change{Kind: pkgrepo.Publish, Package: "a", Workspace: "mine", Expect: draft.Commit}, write("b", "mine", "one"))
			if diff := cmp.Diff([]string{"a/v2", "a/v4", "a/v5", "a/v6", "a/v7"}, s.tags()); diff != "" || len(gone) != 2 {
				t.Error(gone, diff)
			}
			refused := s.Refused()
			if len(refused) != 1 || refused[0].Ref != "refs/tags/a/v2" || !strings.Contains(refused[0].Err.Error(), "v2") && tc.hook == "update" {
				t.Errorf("%v", refused)
			}
			pushes := s.server.Count(upstream.Push)
			if s.prune(keeping(4)); s.server.Count(upstream.Push) != pushes || len(s.Refused()) != 1 {
				t.Error("what was refused is tried again at once")
			}
			s.Hook(tc.hook, "exit 0")
			clock.SetTime(clock.Now().Add(time.Hour))
			if gone := s.prune(keeping(4)); len(gone) != 1 || len(s.Refused()) != 0 {
				t.Errorf("%v, %v", gone, s.Refused())
			}
			s.sound()
		})
	}
}

// TestAKilledPruningIsRepeated: whatever part of the tags has gone, and whether or not the answer came, the rest goes.
func TestAKilledPruningIsRepeated(t *testing.T) {
	t.Parallel()
	for made := range 8 {
		t.Run(fmt.Sprint(made, " moves"), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP, withoutAtomic)
			branched(s, 6)
			s.sync()
			draft := s.one(write("a", "mine", "two"))
			before := s.refs()
			round := pkgrepo.Change{Kind: pkgrepo.Publish, Package: "a", Workspace: "mine", Expect: draft.Commit}
			s.prune(keeping(3), round)
			after := s.refs()
			// The moves are made anew in the order of the steps, as far as they came.
			steps := moves(before, after)
			if len(steps) != 6 {
				t.Fatalf("%d moves: %v", len(steps), steps)
			}
			for name, at := range before {
				s.SetRef(name, at)
			}
			s.Raw("update-ref", "-d", "refs/tags/a/v7")
			for _, step := range steps[:min(made, len(steps))] {
				s.Raw("update-ref", step[0], step[1])
			}
			s.restart()
			s.sync()
			for range 2 {
				s.prune(keeping(3), round)
			}
			s.prune(keeping(3))
			if diff := cmp.Diff([]string{"a/v5", "a/v6", "a/v7"}, s.tags()); diff != "" {
				t.Error(diff)
			}
			if names := slices.Collect(maps.Keys(s.refs())); len(names) != 4 {
				t.Errorf("%v", names)
			}
			s.sound()
		})
	}
}

// TestNoTagGoesWhoseCommitHasLeftTheBranch, also where it was on the branch when it was found to be over: with the tag, the commit would be lost.
func TestNoTagGoesWhoseCommitHasLeftTheBranch(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	branched(s, 6)
	s.sync()
	if found := s.leftovers(keeping(3)); len(found) != 3 {
		t.Fatalf("%v is over", found)
	}
	s.SetRef("refs/heads/main", s.Commit("other", "anew", packaged("a", "x")))
	s.sync()
	if gone := s.prune(keeping(3)); len(gone) > 0 {
		t.Errorf("%v has gone, and its commits with it", gone)
	}
}
