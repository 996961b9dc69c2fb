package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream/registry"
)

func TestOCIPollsWithoutNewsAreOneHEADAndWriteNothing(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Users: map[string]string{"ada": ociPassword}})
	pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
	s.dockerConfig("login", r.DockerConfig("ada"))
	s.create("module", r.URL("team/app"), ociSecret("login"), ociEvery(100*time.Millisecond))
	s.ready("module", at("latest", pushed))
	s.toldNewArtifact("module", at("latest", pushed))
	before, events := s.get("module"), s.eventNames("module")

	r.Reset()
	s.eventually("the registry is polled ten times", func(context.Context) (bool, string) {
		return r.Count(registry.ManifestHEAD) >= 10, fmt.Sprint(r.Count())
	})
	for _, request := range r.Requests() {
		if request.Kind != registry.ManifestHEAD || request.Reference != "latest" || request.Status > http.StatusOK {
			t.Errorf("a poll cost %s %s, answered %d", request.Method, request.URI, request.Status)
		}
	}
	if n := r.Tokens().Count(); n != 0 {
		t.Errorf("polls cost %d tokens", n)
	}
	after := s.get("module")
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("polls wrote to the API server: %s became %s", asJSON(before), asJSON(after))
	}
	if now := s.eventNames("module"); now != events {
		t.Errorf("polls told events: %s became %s", events, now)
	}

	// Flux's own CRD knows no contentConfigChecksum: the API server prunes it. That alone is no reason to write.
	s.editStatus("module", func(status *sourcev1.OCIRepositoryStatus) { status.ContentConfigChecksum = "" })
	before = s.get("module")
	r.Reset()
	s.eventually("the registry is polled ten times more", func(context.Context) (bool, string) {
		return r.Count(registry.ManifestHEAD) >= 10, fmt.Sprint(r.Count())
	})
	if after := s.get("module"); before.ResourceVersion != after.ResourceVersion {
		t.Errorf("polls wrote to the API server: %s became %s", asJSON(before), asJSON(after))
	}

	// A reconcile that is asked for is answered in status, and changes nothing else there.
	asked := s.reconcile("module")
	asked.Status.LastHandledReconcileAt = before.Status.LastHandledReconcileAt
	if asJSON(asked.Status) != asJSON(before.Status) {
		t.Errorf("a reconcile without news turned status %s into %s", asJSON(before.Status), asJSON(asked.Status))
	}
}

func TestOCINothingIsAskedForTwice(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	t.Run("digest", func(t *testing.T) {
		t.Log("What a digest names cannot change: once stored, nobody has to be asked.")
		s := s.in(t)
		r := registry.ForTest(t, registry.Options{})
		pushed := r.Repository("team/app").PushFlux("v1", module(1), nil)
		s.create("digest", r.URL("team/app"), ociDigest(pushed))
		before := s.ready("digest", pushed.Digest.String())
		r.Reset()
		for range 3 {
			sameOCIArtifact(t, before, s.reconcile("digest"))
		}
		if n := r.Count(); n != 0 {
			t.Errorf("%d requests for a digest that is stored: %+v", n, r.Requests())
		}
	})
	t.Run("same-layer", func(t *testing.T) {
		t.Log("A tag that moves to another manifest of the same layer costs no pull.")
		s := s.in(t)
		r := registry.ForTest(t, registry.Options{})
		repository := r.Repository("team/app")
		first := repository.PushFlux("latest", module(1), map[string]string{ocispec.AnnotationRevision: "main@sha1:1"})
		s.create("same-layer", r.URL("team/app"))
		before := s.ready("same-layer", at("latest", first))
		r.Reset()
		second := repository.PushFlux("latest", module(1), map[string]string{ocispec.AnnotationRevision: "main@sha1:2"})
		s.request("same-layer")
		after := s.ready("same-layer", at("latest", second))
		if n := blobs(r); n != 0 {
			t.Errorf("%d blobs were pulled", n)
		}
		if was, is := before.Status.Artifact, after.Status.Artifact; was.Digest != is.Digest || is.Metadata[ocispec.AnnotationRevision] != "main@sha1:2" {
			t.Errorf("artifact %s became %s", asJSON(was), asJSON(is))
		}
	})
	t.Run("tag-list", func(t *testing.T) {
		t.Log("A list of tags that has not changed is not sent again, where the registry can say so; what may follow it is.")
		s := s.in(t)
		r := registry.ForTest(t, registry.Options{})
		r.SetTagETags(true)
		repository := r.Repository("team/app")
		first := repository.PushFlux("1.0.0", module(1), nil)
		s.create("tag-list", r.URL("team/app"), ociSemver("*"))
		s.ready("tag-list", at("1.0.0", first))
		r.Reset()
		s.reconcile("tag-list")
		requests := r.Requests()
		if len(requests) != 3 || r.Count(registry.ManifestHEAD) != 1 || r.Count(registry.Tags) != 2 || requests[0].Status != http.StatusNotModified {
			t.Errorf("a poll of a range cost %+v", requests)
		}
		second := repository.PushFlux("1.0.1", module(2), nil)
		s.request("tag-list")
		s.ready("tag-list", at("1.0.1", second))
	})
	t.Run("identities", func(t *testing.T) {
		t.Log("Objects with the same login share a token; another login gets its own.")
		s := s.in(t)
		r := registry.ForTest(t, registry.Options{Auth: registry.TokenAuth, Users: map[string]string{"ada": ociPassword, "bob": ociPassword}})
		pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
		s.dockerConfig("ada-1", r.DockerConfig("ada"))
		s.dockerConfig("ada-2", r.DockerConfig("ada"))
		s.dockerConfig("bob", r.DockerConfig("bob"))
		for i, secret := range []string{"ada-1", "ada-2", "bob"} {
			s.create("identity-"+secret, r.URL("team/app"), ociSecret(secret))
			s.ready("identity-"+secret, at("latest", pushed))
			if got, want := r.Tokens().Count(), 1+i/2; got != want {
				t.Errorf("after %s there were %d requests for tokens, want %d: %+v", secret, got, want, r.Tokens().Requests())
			}
		}
		for i, request := range r.Tokens().Requests() {
			if want := []string{"ada", "bob"}[i]; request.Username != want {
				t.Errorf("token %d is for %q, want %q", i, request.Username, want)
			}
		}
	})
}
