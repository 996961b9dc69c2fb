package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

func TestASuspendedObjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"), every(100*time.Millisecond))
	good := s.ready("app", mainAt(first))

	s.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Suspend = true })
	s.until("app", "the suspension is seen", func(obj *sourcev1.GitRepository) bool {
		return obj.Status.ObservedGeneration == obj.Generation
	})
	server.Reset()
	second := repository.Commit("main", "Second", oneFile("replicas: 2\n"))
	for range 3 {
		sameArtifact(t, good, s.reconcile("app"))
	}
	if requests := server.Requests(); len(requests) != 0 {
		t.Errorf("upstream was asked for a suspended object: %+v", requests)
	}
	s.download(good.Status.Artifact)

	s.edit("app", func(obj *sourcev1.GitRepository) { obj.Spec.Suspend = false })
	s.holds(s.ready("app", mainAt(second)).Status.Artifact, repository.Tree(second))
}

func TestADeletedObjectLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	for _, name := range []string{"app", "same", "broken"} {
		s.create(name, server.URL("app"))
	}
	app, same := s.ready("app", mainAt(commit)), s.ready("same", mainAt(commit))
	s.ready("broken", mainAt(commit))
	if got := app.Finalizers; len(got) != 1 || got[0] != "finalizers.fluxcd.io" {
		t.Errorf("finalizers are %q", got)
	}
	server.Always(upstream.Status(500))
	s.request("broken")
	s.failing("broken", fetchFailed("500"))
	s.edit("broken", func(obj *sourcev1.GitRepository) { obj.Spec.Suspend = true })
	for _, name := range []string{"app", "broken"} {
		if err := env.Client.Delete(t.Context(), s.get(name)); err != nil {
			t.Fatal(err)
		}
		s.gone(name)
	}
	if answer, err := get(t.Context(), app.Status.Artifact.URL); err != nil || answer.status != 404 {
		t.Errorf("the artifact of a deleted object answers %d, %v", answer.status, err)
	}
	// Both had the same bytes; those of the other object stay.
	s.download(same.Status.Artifact)
	found, wrong := readDisk(s.storage)
	if left := append(found.strays(), wrong...); len(left) > 0 || len(found.files) != 1 || len(found.blobs) != 1 {
		t.Errorf("left behind: %q, files %v, bodies %v", left, found.files, found.blobs)
	}
}

func TestFilesOfObjectsThatWentMeanwhileGoAtTheStart(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"))
	s.create("stays", server.URL("app"))
	app, stays := s.ready("app", mainAt(commit)), s.ready("stays", mainAt(commit))
	s.stop()
	s.edit("app", func(obj *sourcev1.GitRepository) { obj.Finalizers = nil })
	if err := env.Client.Delete(t.Context(), s.get("app")); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.eventually("the file goes", func(context.Context) (bool, string) {
		found, _ := readDisk(s.storage)
		_, kept := found.records[stays.Status.Artifact.Path]
		_, left := found.records[app.Status.Artifact.Path]
		return kept && !left, fmt.Sprint(found.records)
	})
}

func TestAnObjectMadeAnewGetsNothingOfItsNamesake(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	old := s.upstream.Repository("old").Commit("main", "First", oneFile("secret of a tenant that has gone\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("old"))
	before := s.ready("app", mainAt(old))
	s.stop()
	// Nobody watches while the object is replaced by another one of its name.
	s.edit("app", func(obj *sourcev1.GitRepository) { obj.Finalizers = nil })
	if err := env.Client.Delete(t.Context(), s.get("app")); err != nil {
		t.Fatal(err)
	}
	s.upstream.Repository("empty")
	s.create("app", server.URL("empty"))
	s.start()
	obj := s.failing("app", trouble{sourcev1.FetchFailedCondition, sourcev1.EmptyGitRepositoryReason, "empty"})
	if obj.Status.Artifact != nil {
		t.Errorf("the new object shows %s", asJSON(obj.Status.Artifact))
	}
	found, _ := readDisk(s.storage)
	if len(found.files) != 0 {
		t.Errorf("%s is still stored: %v", before.Status.Artifact.Path, found.files)
	}
}

func TestWhatCannotBeDoneStallsAndIsNamed(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	url := s.upstream.HTTP(upstream.HTTPOptions{}).URL("app")
	type spec = sourcev1.GitRepositorySpec
	byRef := func(field, value string) change {
		return func(spec *spec) {
			spec.Reference = map[string]*sourcev1.GitRepositoryRef{
				"commit": {Commit: value}, "name": {Name: value}, "semver": {SemVer: value}, "tag": {Tag: value}, "branch": {Branch: value},
			}[field]
		}
	}
	named := meta.LocalObjectReference{Name: "any"}
	cases := map[string]struct {
		reason string
		change change
		text   string
	}{
		"verify": {sourcev1.InvalidVerificationModeReason, func(s *spec) {
			s.Verification = &sourcev1.GitRepositoryVerification{Mode: sourcev1.ModeGitTag, SecretRef: named}
		}, "spec.ref.tag"},
		"provider":  {sourcev1.InvalidProviderConfigurationReason, func(s *spec) { s.Provider = "github" }, "spec.provider"},
		"commit":    {sourcev1.GitOperationFailedReason, byRef("commit", "abc123"), "spec.ref.commit"},
		"name":      {sourcev1.GitOperationFailedReason, byRef("name", "main"), "spec.ref.name"},
		"tag":       {sourcev1.GitOperationFailedReason, byRef("tag", "v1..2"), "spec.ref.tag"},
		"branch":    {sourcev1.GitOperationFailedReason, byRef("branch", "a b"), "spec.ref.branch"},
		"semver":    {sourcev1.GitOperationFailedReason, byRef("semver", ">=one"), "spec.ref.semver"},
		"no-secret": {sourcev1.AuthenticationFailedReason, func(s *spec) { s.URL = "ssh://git@127.0.0.1/app.git" }, "spec.secretRef"},
		"no-host":   {sourcev1.URLInvalidReason, func(s *spec) { s.URL = "https:///app.git" }, "spec.url"},
	}
	for name, c := range cases {
		s.create(name, url, c.change)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			obj := s.until(name, "is stalled", func(obj *sourcev1.GitRepository) bool { return conditions.IsStalled(obj) })
			message := conditions.GetMessage(obj, meta.StalledCondition)
			if reason := conditions.GetReason(obj, meta.StalledCondition); reason != c.reason || !strings.Contains(message, c.text) {
				t.Errorf("stalled for %s: %s; want %s and %q", reason, message, c.reason, c.text)
			}
			if !conditions.IsFalse(obj, meta.ReadyCondition) || conditions.IsReconciling(obj) || obj.Status.ObservedGeneration != obj.Generation {
				t.Errorf("status is not that of a stalled object: %s", asJSON(obj.Status))
			}
			s.told(name, "Warning", c.reason, c.text)
			s.edit(name, func(obj *sourcev1.GitRepository) {
				obj.Spec = spec{URL: url, Interval: obj.Spec.Interval, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}}
			})
			s.ready(name, mainAt(commit))
		})
	}
}
