package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// TestTwoReplicasWriteAPackageOnce: the leader is killed while it pushes a draft, and its successor while it pushes what is to be
// published. Whoever takes over finds what came of it, or makes it: once.
func TestTwoReplicasWriteAPackageOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		strike func(*standbys) (release func())
	}{
		"unheard": {"Git takes the push of one that is dead by then.", (*standbys).strikeInGit},
		"late":    {"A push comes to Git when somebody else has made it already.", (*standbys).strikeOnTheWay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(c.reason)
			s := newStandbys(t)
			v := s.variant("web", "north")

			release := c.strike(s)
			s.make(v)
			s.takeOver()
			s.drafted(v, 1)
			release()
			s.answered()
			draft := "refs/heads/" + branch(v)
			s.drafted(v, 1)

			proposal := s.propose(v)
			release = c.strike(s)
			s.amend(proposal, func() {
				proposal.Spec.Lifecycle, proposal.Spec.ApprovedCommit = packagesv1.LifecyclePublished, proposal.Status.Commit
			})
			s.takeOver()
			s.untilRevision(proposal.Name, packagesv1.LifecyclePublished)
			s.untilVariant(v, "is published", func() bool { return isDone(v) && v.Status.Change == nil && v.Status.Published != nil })
			release()
			s.answered()
			s.wroteOnce(draft, "refs/tags/web/v1")
		})
	}
}

// standbys is a scene with two replicas, one of which leads.
type standbys struct {
	*packageScene

	server  *upstream.GitHTTP
	standby *testenv.Manager
}

func newStandbys(t *testing.T) *standbys {
	t.Helper()
	s := &standbys{packageScene: newPackageScene(t, append([]string{
		"--enable-leader-election", "--leader-election-lease-duration=20s", "--leader-election-renew-deadline=15s", "--leader-election-retry-period=300ms",
	}, withEndpoints...)...)}
	s.server = s.overHTTP()
	s.injects("north")
	s.repositories(blueprints, "north")
	for _, hook := range []string{"pre-receive", "reference-transaction", "post-receive"} {
		s.repos["north"].Hook(hook, recordHook)
	}
	s.revise("web", 1)
	s.start()
	s.answers(s.manager, "/readyz", http.StatusOK)
	s.standby = s.another()
	return s
}

// strikeInGit kills the leader once Git has all of its next push, which it takes all the same.
func (s *standbys) strikeInGit() (release func()) {
	s.t.Helper()
	mark := filepath.Join(s.repos["north"].Dir(), "strike-pre-receive")
	if err := os.WriteFile(mark, []byte(strconv.Itoa(s.manager.Pid())), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return func() {}
}

// strikeOnTheWay kills the leader once it has sent all of its next push, which comes to Git when it is released.
func (s *standbys) strikeOnTheWay() (release func()) {
	s.t.Helper()
	leader, held := s.manager, make(chan struct{})
	var struck atomic.Bool
	s.server.Before(upstream.Push, func() {
		if !struck.Swap(true) {
			leader.Kill()
			<-held
		}
	})
	release = sync.OnceFunc(func() { close(held) })
	s.t.Cleanup(release)
	return release
}

// takeOver waits until the leader is dead and the standby leads, and starts another one.
func (s *standbys) takeOver() {
	s.t.Helper()
	s.eventually("the leader dies in its push", func(context.Context) (bool, string) {
		select {
		case <-s.manager.Done():
			return true, ""
		default:
			return false, "it lives"
		}
	})
	s.manager = s.standby
	s.answers(s.manager, "/readyz", http.StatusOK)
	s.standby = s.another()
}

// answered waits until Git has answered all pushes.
func (s *standbys) answered() {
	s.t.Helper()
	s.eventually("all pushes are answered", func(context.Context) (bool, string) {
		left := slices.DeleteFunc(s.server.Requests(), func(r upstream.Request) bool { return r.Kind != upstream.Push || r.Status != 0 })
		return len(left) == 0, fmt.Sprintf("%d are not", len(left))
	})
}

// wroteOnce checks that the draft and the tag were made once, and that nothing else is there.
func (s *standbys) wroteOnce(draft, tag string) {
	s.t.Helper()
	repo := s.repos["north"]
	record, err := os.ReadFile(filepath.Join(repo.Dir(), "record"))
	if err != nil {
		s.t.Fatal(err)
	}
	came := map[string]int{}
	for line := range strings.Lines(string(record)) {
		if ref, commit, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Trim(commit, "0") != "" {
			came[ref]++
		}
	}
	if came[draft] != 1 || came[tag] != 1 || came["refs/heads/main"] != 1 {
		s.t.Errorf("the draft was written %d times, the tag %d and the branch %d times:\n%s", came[draft], came[tag], came["refs/heads/main"], record)
	}
	if refs, want := repo.Raw("for-each-ref", "--format=%(refname)"), "refs/heads/main\n"+tag; refs != want {
		s.t.Errorf("there is\n%s\nnot\n%s", refs, want)
	}
	if commits := repo.Raw("rev-list", "--count", "main"); commits != "2" {
		s.t.Errorf("the branch has %s commits", commits)
	}
	s.sound()
}
