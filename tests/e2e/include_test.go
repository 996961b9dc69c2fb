package e2e

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// noInclude is an include whose artifact is not there.
func noInclude(reason, text string) trouble {
	return trouble{sourcev1.IncludeUnavailableCondition, reason, text}
}

func TestAChainOfIncludesFollowsAtOnce(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	commits := map[string]string{}
	repositories := map[string]*upstream.Edited{}
	for _, name := range []string{"base", "middle", "top"} {
		repositories[name] = s.upstream.Repository(name)
		commits[name] = repositories[name].Commit("main", "First", upstream.Text(map[string]string{name + ".yaml": "replicas: 1\n"}))
	}
	s.create("base", server.URL("base"))
	s.create("middle", server.URL("middle"), include("base", "", "vendor"))
	s.create("top", server.URL("top"), include("middle", "vendor/base.yaml", "copied/one.yaml"), include("middle", "", ""))
	before := s.ready("top", mainAt(commits["top"]))
	s.holds(before.Status.Artifact, upstream.Text(map[string]string{
		"top.yaml": "replicas: 1\n", "copied/one.yaml": "replicas: 1\n",
		"middle/middle.yaml": "replicas: 1\n", "middle/vendor/base.yaml": "replicas: 1\n",
	}))

	// Only the innermost is told to look; the others are looked at every hour and follow all the same.
	repositories["base"].Commit("main", "Second", upstream.Text(map[string]string{"base.yaml": "replicas: 2\n"}))
	s.request("base")
	after := s.until("top", "has other content", func(obj *sourcev1.GitRepository) bool {
		return conditions.IsReady(obj) && obj.Status.Artifact.Digest != before.Status.Artifact.Digest
	})
	s.holds(after.Status.Artifact, upstream.Text(map[string]string{
		"top.yaml": "replicas: 1\n", "copied/one.yaml": "replicas: 2\n",
		"middle/middle.yaml": "replicas: 1\n", "middle/vendor/base.yaml": "replicas: 2\n",
	}))
	if after.Status.Artifact.Revision != before.Status.Artifact.Revision || after.Status.Artifact.URL == before.Status.Artifact.URL {
		t.Errorf("artifact %s became %s: want the same revision under another URL", asJSON(before.Status.Artifact), asJSON(after.Status.Artifact))
	}
	if after.Status.ContentConfigChecksum == before.Status.ContentConfigChecksum {
		t.Error("contentConfigChecksum did not follow the include")
	}
	if got := after.Status.IncludedArtifacts; len(got) != 2 || got[0].Revision != mainAt(commits["middle"]) {
		t.Errorf("status.includedArtifacts: %s", asJSON(got))
	}
}

func TestAMissingIncludeIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newRunning(t, "--requeue-dependency=10m")
	repository := s.upstream.Repository("app")
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	library := s.upstream.Repository("library")
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"), include("library", "", "lib"))
	s.waiting("app", noInclude(sourcev1.NotFoundReason, "could not get resource for include"))

	s.create("library", server.URL("library"))
	s.waiting("app", noInclude(sourcev1.NoArtifactReason, "no artifact available for include"))
	library.Commit("main", "First", upstream.Text(map[string]string{"chart.yaml": "name: lib\n"}))
	s.holds(s.ready("app", mainAt(commit)).Status.Artifact, upstream.Text(map[string]string{
		"deploy/app.yaml": "replicas: 1\n", "lib/chart.yaml": "name: lib\n",
	}))

	good := s.get("app")
	if err := env.Client.Delete(t.Context(), s.get("library")); err != nil {
		t.Fatal(err)
	}
	sameArtifact(t, good, s.waiting("app", noInclude(sourcev1.NotFoundReason, "could not get resource for include")))
	s.download(good.Status.Artifact)
}

// waiting is failing for what is no warning.
func (s *scene) waiting(name string, want trouble) *sourcev1.GitRepository {
	s.t.Helper()
	return s.until(name, "waits", func(obj *sourcev1.GitRepository) bool {
		own := conditions.Get(obj, want.condition)
		return own != nil && own.Reason == want.reason && strings.Contains(own.Message, want.text) && conditions.IsFalse(obj, meta.ReadyCondition) && conditions.IsReconciling(obj)
	})
}

func TestACycleOfIncludesIsRefusedUntilItIsBroken(t *testing.T) {
	t.Parallel()
	s := newRunning(t, "--requeue-dependency=200ms")
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("one", server.URL("app"), include("two", "", "two"))
	s.create("two", server.URL("app"), include("three", "", "three"))
	s.create("three", server.URL("app"), include("one", "", "one"))
	s.create("self", server.URL("app"), include("self", "", "self"))
	for _, name := range []string{"one", "two", "three", "self"} {
		obj := s.waiting(name, noInclude(sourcev1.NoArtifactReason, "leads back to this GitRepository"))
		if obj.Status.Artifact != nil {
			t.Errorf("%s has the artifact %s", name, asJSON(obj.Status.Artifact))
		}
	}
	if requests := server.Requests(); len(requests) != 0 {
		t.Errorf("upstream was asked for what cannot be built: %+v", requests)
	}
	// One edit heals them all.
	s.edit("three", func(obj *sourcev1.GitRepository) { obj.Spec.Include = nil })
	for _, name := range []string{"three", "two", "one"} {
		s.ready(name, mainAt(commit))
	}
	if obj := s.get("self"); conditions.IsReady(obj) {
		t.Errorf("an object that includes itself is ready: %s", asJSON(obj.Status))
	}
}

func TestAnIncludeThatCannotBeCopiedIsTold(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	commit := s.upstream.Repository("library").Commit("main", "First", upstream.Text(map[string]string{"chart.yaml": "name: lib\n"}))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("library", server.URL("library"))
	s.ready("library", mainAt(commit))
	copyFailed := trouble{sourcev1.StorageOperationFailedCondition, sourcev1.CopyFailureReason, "copy spec.include"}
	s.create("over", server.URL("app"), include("library", "", "deploy"))
	s.failing("over", copyFailed)
	s.create("nothing", server.URL("app"), include("library", "charts", "charts"))
	s.failing("nothing", copyFailed)
	s.edit("nothing", func(obj *sourcev1.GitRepository) { obj.Spec.Include[0].FromPath = "chart.yaml" })
	s.until("nothing", "is ready with the one file", func(obj *sourcev1.GitRepository) bool { return conditions.IsReady(obj) })
}
