package pkgrepo_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// withoutAtomic makes a server that moves refs one by one.
func withoutAtomic(s *shop) { s.Raw("config", "receive.advertiseAtomic", "false") }

func TestAServerWithoutAtomicPushesIsServedInSteps(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overHTTP, overSSH} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, over, withoutAtomic)
			walkThrough(t, func() *shop { s.settings.Directory = "config"; s.restart(); return s }())
		})
	}
}

// TestACrashBetweenTwoMovesIsCompleted: whatever prefix of the moves of two publications and a proposal was made, all is as if
// nothing had happened, by the next look for what is on the branch, and by asking again for the rest.
func TestACrashBetweenTwoMovesIsCompleted(t *testing.T) {
	t.Parallel()
	model := newShop(t, overHTTP, withoutAtomic)
	round := twoPublications(model)
	before := model.refs()
	model.apply(round...)
	after := model.refs()
	steps := moves(before, after)
	if len(steps) != 7 {
		t.Fatalf("%d moves: %v", len(steps), steps)
	}
	for made := range len(steps) + 1 {
		for _, comes := range []string{"nobody", "somebody"} {
			t.Run(fmt.Sprintf("%d moves and %s else", made, comes), func(t *testing.T) {
				t.Parallel()
				s := newShop(t, overHTTP, withoutAtomic)
				round := twoPublications(s)
				s.Raw("fetch", "-q", "--no-tags", model.Dir(), "+refs/*:refs/model/*")
				for _, step := range steps[:made] {
					s.Raw("update-ref", step[0], step[1])
				}
				if comes == "somebody" {
					s.Commit("main", "by hand", packaged("other", "x"))
				}
				s.restart()
				if made > 0 {
					s.sync()
					if len(s.Snapshot().Package("a").Published) != 2 || len(s.Snapshot().Package("b").Published) != 2 {
						t.Errorf("what is on the branch is not completed: %v", s.names())
					}
				}
				for range 2 {
					s.apply(round...)
				}
				got := s.names()
				got = slices.DeleteFunc(got, func(name string) bool { return strings.HasPrefix(name, "refs/model/") })
				if diff := cmp.Diff(slices.Sorted(maps.Keys(after)), got); diff != "" {
					t.Error(diff)
				}
				for _, pkg := range []string{"a", "b"} {
					release := s.Snapshot().Package(pkg).Newest()
					if release.Number != 2 || s.at("main:"+pkg) != release.Tree || s.Raw("merge-base", "--is-ancestor", release.Commit, "main") != "" {
						t.Errorf("%s: %+v, the branch has %s: %q", pkg, release, s.at("main:"+pkg), s.Raw("merge-base", "--is-ancestor", release.Commit, "main"))
					}
					if n := s.Raw("log", "--format=%h", "--grep=Sluice-Package: "+pkg, "--grep=Sluice-Revision: v2", "--all-match", "main"); strings.Contains(n, "\n") {
						t.Errorf("%s was published twice: %s", pkg, n)
					}
				}
				if s.Tree("main")["other/file0.yaml"].Content != map[string]string{"somebody": "x"}[comes] {
					t.Error("a commit was lost")
				}
				s.sound()
			})
		}
	}
}

// twoPublications are what is to be done in a repository in which two packages have a draft, and a third one as well.
func twoPublications(s *shop) []pkgrepo.Change {
	s.t.Helper()
	round := make([]pkgrepo.Change, 0, 3)
	for _, pkg := range []string{"a", "b"} {
		s.publish(pkg, "one")
		draft := s.one(write(pkg, "mine", "two"))
		round = append(round, pkgrepo.Change{Kind: pkgrepo.Publish, Package: pkg, Workspace: "mine", Expect: draft.Commit})
	}
	draft := s.one(write("c", "mine", "one"))
	return append(round, pkgrepo.Change{Kind: pkgrepo.Propose, Package: "c", Workspace: "mine", Expect: draft.Commit})
}

// moves are the refs that differ, with where each comes to be, in the order in which they are moved: the branch, what is new,
// what goes.
func moves(before, after map[string]string) (steps [][2]string) {
	none := strings.Repeat("0", 40)
	steps = append(steps, [2]string{"refs/heads/main", after["refs/heads/main"]})
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == "" {
			steps = append(steps, [2]string{name, after[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			steps = append(steps, [2]string{name, none})
		}
	}
	return steps
}

// TestALostAnswerIsNoSecondChange: the connection breaks after the server has done everything.
func TestALostAnswerIsNoSecondChange(t *testing.T) {
	t.Parallel()
	for _, atomic := range []bool{true, false} {
		t.Run(fmt.Sprintf("atomic %t", atomic), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			if !atomic {
				withoutAtomic(s)
			}
			round := append(twoPublications(s), write("d", "", "one"), write("a", "", "three"))
			s.server.FailNext(2, upstream.CutBody(1).On(upstream.Push))
			s.server.Always(upstream.CutBody(1).On(upstream.PushRefs))
			results := s.Apply(t.Context(), round)
			s.server.Heal()
			for i, r := range results {
				if r.Err == nil && !r.Changed {
					t.Errorf("%s %s: %+v", round[i].Kind, round[i].Package, r)
				}
			}
			s.restart()
			for i, r := range s.Apply(t.Context(), round[:3]) {
				if r.Err != nil {
					t.Errorf("%s %s: %v", round[i].Kind, round[i].Package, r.Err)
				}
			}
			for _, pkg := range []string{"a", "b"} {
				if n := len(s.Snapshot().Package(pkg).Published); n != 2 {
					t.Errorf("%s was published %d times", pkg, n)
				}
			}
			s.sound()
		})
	}
}

// TestALeftOverIsWhatATrailerNamesAlone: a revision that says it was published from an open change, and has something else in
// it, takes nothing away.
func TestALeftOverIsWhatATrailerNamesAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.publish("a", "one")
	draft := s.one(write("a", "mine", "two"))
	forged := "by hand\n\nSluice-Package: a\nSluice-Revision: v2\nSluice-Change: " + draft.Commit + "\n"
	s.Tag("a/v2", s.Commit("main", forged, upstream.Text(map[string]string{"a/a.yaml": "three"})), false)
	same := s.one(write("b", "same", "one"))
	s.SetRef("refs/heads/proposed/b/same", same.Commit)
	s.SetRef("refs/heads/drafts/b/other", same.Commit)
	s.SetRef("refs/heads/drafts/a/untouched", s.at("main"))
	for range 2 {
		got := s.sync()
		if got.Package("a").Find("mine") == nil || got.Package("a").Find("untouched") == nil || len(got.Package("a").Published) != 2 || got.Unfinished != nil {
			t.Errorf("%+v, %v", got.Package("a"), got.Unfinished)
		}
		want := []brief{
			{"", "other", 0, pkgrepo.Draft, "refs/heads/drafts/b/other", true, false},
			{"", "same", 0, pkgrepo.Proposed, "refs/heads/proposed/b/same", true, false},
		}
		if diff := cmp.Diff(want, brieflyAll(got.Package("b").Open)); diff != "" {
			t.Error(diff)
		}
		s.restart()
	}
}

// TestWhatCannotBeCompletedIsTold, and tried again at each look.
func TestWhatCannotBeCompletedIsTold(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	draft := s.one(write("b", "same", "one"))
	s.SetRef("refs/heads/proposed/b/same", draft.Commit)
	s.Hook("pre-receive", "exit 1")
	for range 2 {
		if got := s.sync(); !errors.Is(got.Unfinished, git.ErrRejected) || got.Package("b") == nil {
			t.Errorf("%v", got.Unfinished)
		}
	}
	s.Hook("pre-receive", "exit 0")
	if got := s.sync(); got.Unfinished != nil || len(got.Package("b").Open) != 1 {
		t.Errorf("%v, %+v", got.Unfinished, got.Package("b").Open)
	}
}
