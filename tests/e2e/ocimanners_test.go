package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

func TestOCIFailuresOfTheRegistryAreToldAndHeal(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	sink := s.upstream.Sink(upstream.SinkOptions{})
	const early = 50 // bytes into a layer; a blob that breaks off is continued twice
	other := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("something else"), Size: 400}

	cases := map[string]struct {
		reason string
		fault  registry.Fault
		want   trouble
	}{
		"429":            {"The registry is asked too often.", registry.RetryLater(http.StatusTooManyRequests, time.Hour), pullFailed("429 Too Many Requests")},
		"429-by-date":    {"It says until when.", registry.RetryAt(http.StatusTooManyRequests, time.Now().Add(time.Hour)), pullFailed("429 Too Many Requests")},
		"429-for-layers": {"Layers alone are too many.", registry.RetryLater(http.StatusTooManyRequests, time.Hour).On(registry.Blob), layerFailed("429 Too Many Requests")},
		"503":            {"The registry is being worked on.", registry.RetryLater(http.StatusServiceUnavailable, time.Hour), pullFailed("503 Service Unavailable")},
		"500":            {"The registry is broken.", registry.Status(http.StatusInternalServerError), pullFailed("500 Internal Server Error")},
		"500-manifest":   {"It cannot read a manifest.", registry.Status(http.StatusInternalServerError).On(registry.ManifestGET), pullFailed("500 Internal Server Error")},
		"403":            {"The registry refuses whoever asks.", registry.Status(http.StatusForbidden), pullFailed("403 Forbidden")},
		"404":            {"The repository is gone.", registry.Status(http.StatusNotFound), pullFailed("not found")},
		"404-layer":      {"The layer is gone.", registry.Status(http.StatusNotFound).On(registry.Blob), layerFailed("not found")},
		"cut":            {"A layer that ends early is no layer.", registry.Cut(early).On(registry.Blob), layerFailed("unexpected EOF")},
		"corrupt":        {"A layer is checked against its digest.", registry.Corrupt(early).On(registry.Blob), layerFailed("does not match its digest")},
		"corrupt-end":    {"To the last byte.", registry.Corrupt(0).On(registry.Blob), layerFailed("does not match its digest")},
		"corrupt-copy":   {"Also where it is copied.", registry.Corrupt(early).On(registry.Blob), layerFailed("does not match its digest")},
		"bad-manifest":   {"So is a manifest.", registry.Corrupt(early).On(registry.ManifestGET), pullFailed("does not match its digest")},
		"wrong-digest":   {"A digest that the registry names has to be there.", registry.WrongDigest().On(registry.ManifestHEAD), pullFailed("not found")},
		"head-lies":      {"HEAD describes what GET does not have.", registry.HeadSays(other), pullFailed("not found")},
		"no-digest":      {"A digest that is none.", registry.Header("Docker-Content-Digest", "sha256:latest").On(registry.ManifestHEAD), pullFailed("digest")},
		"loop":           {"A redirect to itself ends.", registry.RedirectLoop().On(registry.Blob), layerFailed("redirect")},
		"loop-of-all":    {"So it does for a tag.", registry.RedirectLoop(), pullFailed("redirect")},
		"to-nowhere":     {"A redirect to another scheme is not followed.", registry.Redirect(http.StatusTemporaryRedirect, "file:///etc/passwd").On(registry.Blob), layerFailed("redirect")},
		"foreign-realm":  {"Nobody else hands out tokens for a registry.", registry.ForeignRealm(strings.Replace(sink.URL(), "127.0.0.1", "localhost", 1)), pullFailed("token server is not trusted")},
		"html":           {"A log-in page is no registry.", registry.HTML(), pullFailed("text/html")},
		"html-layer":     {"Nor is it a layer.", registry.HTML().On(registry.Blob), layerFailed("text/html")},
		"garbage":        {"JSON that breaks off is no manifest.", registry.GarbageJSON().On(registry.ManifestGET), pullFailed("digest")},
		"huge-manifest":  {"A manifest without end meets a limit.", registry.Huge(64 << 20).On(registry.ManifestGET), pullFailed("limit exceeded")},
		"dropped":        {"A connection closed without an answer.", registry.Drop(), pullFailed("EOF")},
		"hang":           {"The spec's timeout bounds a registry that never answers.", registry.Hang(), pullFailed("spec.timeout of 3s was not enough")},
		"hang-in-layer":  {"And a layer that stops.", registry.HangAfter(early).On(registry.Blob), layerFailed("spec.timeout of 3s was not enough")},
		"hang-manifest":  {"And a manifest that never comes.", registry.Hang().On(registry.ManifestGET), pullFailed("spec.timeout of 3s was not enough")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(c.reason)
			s := s.in(t)
			r := registry.ForTest(t, registry.Options{})
			repository := r.Repository("team/app")
			first := repository.PushFlux("latest", module(1), nil)
			changes := []ociChange{ociWithin(boundFor(name))}
			if name == "corrupt-copy" {
				changes = append(changes, ociLayer("", "copy"))
			}
			s.create(name, r.URL("team/app"), changes...)
			good := s.ready(name, at("latest", first))

			r.Always(c.fault)
			second := repository.PushFlux("latest", module(2), nil)
			s.request(name)
			bad := s.failing(name, c.want)
			s.keeps(good, bad)
			s.holds(bad.Status.Artifact, files(module(1)))

			r.Heal()
			s.request(name) // Whoever was told to come back in an hour does so.
			s.holds(s.ready(name, at("latest", second)).Status.Artifact, files(module(2)))
		})
	}
	t.Cleanup(func() {
		if requests := sink.Requests(); len(requests) > 0 {
			t.Errorf("a foreign token server was asked: %+v", requests)
		}
	})
}

// keeps fails unless the good artifact is still the one in status, while its object is being tried again.
func (s ociScene) keeps(good, bad *sourcev1.OCIRepository) {
	s.t.Helper()
	sameOCIArtifact(s.t, good, bad)
	if !conditions.IsTrue(bad, sourcev1.ArtifactInStorageCondition) || !conditions.IsReconciling(bad) || conditions.IsStalled(bad) {
		s.t.Errorf("conditions while it is being retried with an artifact in place: %s", asJSON(bad.Status.Conditions))
	}
}

func TestOCIARegistryIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t) // Without being asked, it would try again within half a second.
	clock, busy, brief := newSigned(t), newSigned(t), newSigned(t)
	for name, r := range map[string]signed{"clock": clock, "busy": busy, "brief": brief} {
		pushed := r.repository.PushFlux("latest", module(1), nil)
		s.create(name, r.URL("team/app"), ociEvery(time.Second))
		s.ready(name, at("latest", pushed))
	}
	busy.Always(registry.RetryLater(http.StatusTooManyRequests, time.Hour))
	brief.FailNext(1, registry.RetryLater(http.StatusServiceUnavailable, time.Second))
	released := brief.repository.PushFlux("latest", module(2), nil)
	s.failing("busy", pullFailed("429 Too Many Requests"))
	s.told("brief", "Warning", sourcev1.OCIPullFailedReason, "503 Service Unavailable")
	busy.Reset()
	clock.Reset()
	s.ready("brief", at("latest", released))
	s.eventually("another registry is polled four times", func(context.Context) (bool, string) {
		return clock.Count() >= 4, fmt.Sprint(clock.Count())
	})
	if n := busy.Count(); n != 0 {
		t.Errorf("a registry that wanted an hour's rest got %d requests", n)
	}
}

func TestOCIOddRegistriesAreUnderstood(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	cases := map[string]struct {
		reason string
		fault  registry.Fault
	}{
		"no-head":   {"A registry that does not know HEAD.", registry.NoHEAD()},
		"no-digest": {"A registry that names no digests.", registry.NoDigest()},
		"no-length": {"A registry that does not tell lengths.", registry.NoLength()},
		"type":      {"A layer under a type that says nothing.", registry.ContentType("application/octet-stream").On(registry.Blob)},
		"later":     {"A broken connection is continued where it broke.", registry.Fault{}},
		"no-ranges": {"A whole layer is taken where parts are not known.", registry.IgnoreRange()},
		"pages":     {"Tags come page by page.", registry.Fault{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			r := registry.ForTest(t, registry.Options{})
			repository := r.Repository("team/app")
			for _, tag := range []string{"0.1.0", "0.2.0", "0.3.0"} {
				repository.PushFlux(tag, module(1), nil)
			}
			pushed := repository.PushFlux("0.10.0", module(2), nil)
			r.SetPageSize(1)
			r.Always(c.fault)
			if name == "later" {
				r.FailNext(2, registry.Cut(50).On(registry.Blob))
			}
			s.create(name, r.URL("team/app"), ociSemver("0.x"))
			s.holds(s.ready(name, at("0.10.0", pushed)).Status.Artifact, files(module(2)))
			if name == "later" && blobs(r) != 3 {
				t.Errorf("a layer that broke off twice cost %d requests: %+v", blobs(r), r.Requests())
			}
		})
	}
}

func TestOCICredentialsStayWithTheRegistry(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	s.hide("the registry's password", ociPassword)
	ca := s.upstream.CA()
	s.secret("ca", map[string]string{"ca.crt": string(ca.PEM())})
	users := map[string]string{"ada": ociPassword}
	for _, auth := range []registry.Auth{registry.Basic, registry.TokenAuth} {
		s.credentialsStay(string(auth), ca, registry.Options{CA: ca, Auth: auth, Users: users})
	}
}

// credentialsStay sends what logs in with each redirect that there is, and looks at what arrives elsewhere.
func (s ociScene) credentialsStay(auth string, ca *upstream.CA, options registry.Options) {
	plain := s.upstream.Sink(upstream.SinkOptions{})
	secure := s.upstream.Sink(upstream.SinkOptions{CA: ca})
	cases := map[string]struct {
		reason string
		kind   registry.Kind
		code   int
		to     *upstream.Sink
		// followed says that the other host is asked, without a credential; else it hears nothing.
		followed bool
	}{
		"layer":           {"A layer may be elsewhere.", registry.Blob, http.StatusTemporaryRedirect, secure, true},
		"layer-moved":     {"Wherever it was moved.", registry.Blob, http.StatusMovedPermanently, secure, true},
		"layer-found":     {"Or was found.", registry.Blob, http.StatusFound, secure, true},
		"layer-downgrade": {"But not where everybody reads along.", registry.Blob, http.StatusTemporaryRedirect, plain, false},
		"tag-downgrade":   {"Nor may a tag be.", registry.ManifestHEAD, http.StatusTemporaryRedirect, plain, false},
		"list-downgrade":  {"Nor a manifest.", registry.ManifestGET, http.StatusFound, plain, false},
	}
	for name, c := range cases {
		s.t.Run(auth+"/"+name, func(t *testing.T) {
			t.Log(c.reason)
			name := auth + "-" + name
			s := s.in(t)
			r := registry.ForTest(t, options)
			pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
			s.dockerConfig(name, r.DockerConfig("ada"))
			r.Always(registry.Redirect(c.code, c.to.URL()+"/elsewhere/"+name).On(c.kind))
			s.create(name, r.URL("team/app"), ociSecure, ociCert("ca"), ociSecret(name))
			s.until(name, "fails", func(obj *sourcev1.OCIRepository) bool { return conditions.IsFalse(obj, meta.ReadyCondition) })
			heard := slices.ContainsFunc(c.to.Requests(), func(request upstream.Request) bool { return strings.HasSuffix(request.URI, "/"+name) })
			if heard != c.followed {
				t.Errorf("the other host was asked: %t, want %t", heard, c.followed)
			}
			if secrets := c.to.Secrets(); len(secrets) > 0 {
				t.Errorf("another host was sent %q", secrets)
			}
			r.Heal()
			s.reconcile(name)
			s.ready(name, at("latest", pushed))
		})
	}
	s.t.Run(auth+"/blob-store", func(t *testing.T) {
		t.Log("A store that signs its URLs refuses all other credentials.")
		s, name := s.in(t), auth+"-store"
		r := registry.ForTest(t, options)
		store := r.BlobStore(ca)
		pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
		s.dockerConfig(name, r.DockerConfig("ada"))
		r.Always(registry.RedirectBlobs(store).On(registry.Blob))
		s.create(name, r.URL("team/app"), ociSecure, ociCert("ca"), ociSecret(name))
		s.holds(s.ready(name, at("latest", pushed)).Status.Artifact, files(module(1)))
		if store.Count() == 0 || len(store.Secrets()) > 0 {
			t.Errorf("the store got the requests %+v, with the credentials %q", store.Requests(), store.Secrets())
		}
	})
	s.t.Run(auth+"/realm", func(t *testing.T) {
		t.Log("A challenge that names another host's token server is answered by nobody.")
		s, name := s.in(t), auth+"-realm"
		r := registry.ForTest(t, options)
		pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
		foreign := s.upstream.Sink(upstream.SinkOptions{CA: ca})
		s.dockerConfig(name, r.DockerConfig("ada"))
		realm := strings.Replace(foreign.URL(), "127.0.0.1", "localhost", 1)
		r.Always(registry.ForeignRealm(realm + "/token"))
		s.create(name, r.URL("team/app"), ociSecure, ociCert("ca"), ociSecret(name))
		s.failing(name, pullFailed("token server is not trusted"))
		if requests := foreign.Requests(); len(requests) > 0 {
			t.Errorf("the foreign token server was asked: %+v", requests)
		}
		r.Heal()
		s.ready(name, at("latest", pushed))
	})
}
