package e2e

import (
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

func TestAStoredCommitPinAsksUpstreamNothing(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	repository.Commit("main", "Second", oneFile("replicas: 2\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("pinned", server.URL("app"), ref(sourcev1.GitRepositoryRef{Commit: commit}))
	s.create("named", server.URL("app"), ref(sourcev1.GitRepositoryRef{Commit: commit, Branch: "main"}))
	first, named := s.ready("pinned", "sha1:"+commit), s.ready("named", mainAt(commit))
	s.holds(first.Status.Artifact, repository.Tree(commit))

	server.Reset()
	for range 3 {
		sameArtifact(t, first, s.reconcile("pinned"))
		sameArtifact(t, named, s.reconcile("named"))
	}
	if requests := server.Requests(); len(requests) != 0 || server.Connections() != 0 {
		t.Errorf("a pin that is stored cost %d requests over %d new connections: %+v", len(requests), server.Connections(), requests)
	}
	// Not even upstream's absence matters.
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	sameArtifact(t, first, s.reconcile("pinned"))
	s.ready("pinned", "sha1:"+commit)
}

func TestSemverMovesForwardAndNeverOutOfItsRange(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	tag := func(content, name string, annotated bool) string {
		commit := repository.Commit("main", name, oneFile(content))
		repository.Tag(name, commit, annotated)
		return commit
	}
	one := tag("one", "v1.0.0", true)
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"), ref(sourcev1.GitRepositoryRef{SemVer: ">=1.0.0 <2.0.0"}))
	before := s.ready("app", "v1.0.0@sha1:"+one)

	tag("other", "v2.0.0", false)
	tag("other", "nightly", false)
	tag("other", "v1.1.0-rc.1", false)
	server.Reset()
	sameArtifact(t, before, s.reconcile("app"))
	if server.Count(upstream.Fetch) != 0 {
		t.Error("tags that are not chosen cost a fetch")
	}
	next := tag("next", "v1.1.0", false)
	s.reconcile("app")
	s.holds(s.ready("app", "v1.1.0@sha1:"+next).Status.Artifact, repository.Tree(next))
}

func TestRefsOfAnyKindAreFollowed(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	repository.Tag("stable", first, true)
	repository.SetRef("refs/pull/7/head", first)
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	cases := map[string]struct {
		reason   string
		ref      sourcev1.GitRepositoryRef
		revision string
		move     func(to string)
	}{
		"forced-push": {
			"A branch whose history was replaced.", sourcev1.GitRepositoryRef{Branch: "main"}, "main", func(to string) { repository.SetRef("refs/heads/main", to) },
		},
		"tag": {
			"A tag that moved.", sourcev1.GitRepositoryRef{Tag: "stable"}, "stable", func(to string) { repository.Tag("stable", to, true) },
		},
		"name": {
			"A pull request's head.", sourcev1.GitRepositoryRef{Name: "refs/pull/7/head"}, "refs/pull/7/head", func(to string) { repository.SetRef("refs/pull/7/head", to) },
		},
	}
	other := repository.Rewrite("elsewhere", "Unrelated", oneFile("replicas: 9\n"))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			s.create(name, server.URL("app"), ref(c.ref))
			s.holds(s.ready(name, c.revision+"@sha1:"+first).Status.Artifact, repository.Tree(first))
			c.move(other)
			s.reconcile(name)
			s.holds(s.ready(name, c.revision+"@sha1:"+other).Status.Artifact, repository.Tree(other))
		})
	}
}

func TestADeletedBranchKeepsTheArtifact(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	commit := repository.Commit("feature", "First", oneFile("replicas: 1\n"))
	repository.Commit("main", "Other", oneFile("replicas: 2\n"))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"), ref(sourcev1.GitRepositoryRef{Branch: "feature"}))
	good := s.ready("app", "feature@sha1:"+commit)

	repository.DeleteRef("refs/heads/feature")
	s.request("app")
	bad := s.failing("app", fetchFailed("refs/heads/feature"))
	sameArtifact(t, good, bad)
	s.holds(bad.Status.Artifact, repository.Tree(commit))

	repository.SetRef("refs/heads/feature", commit)
	sameArtifact(t, good, s.ready("app", "feature@sha1:"+commit))
	s.told("app", "Normal", sourcev1.SucceededReason, "stored artifact for commit")
}

func TestAnEmptyRepositoryHealsAfterItsFirstPush(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	s.failing("app", trouble{sourcev1.FetchFailedCondition, sourcev1.EmptyGitRepositoryReason, "repository is empty"})
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	s.holds(s.ready("app", mainAt(commit)).Status.Artifact, repository.Tree(commit))
}
