package e2e

import (
	"maps"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

const (
	ociIdentity = "https://forge.example/team/app/.ci/release.yaml@refs/tags/v1"
	ociIssuer   = "https://tokens.forge.example"
)

// ociSigner is who signs keyless, and ociTrusted how an object names them.
func ociSigner() verifytest.Signing {
	return verifytest.Signing{Identity: ociIdentity, Issuer: ociIssuer}
}

func ociTrusted() sourcev1.OIDCIdentityMatch {
	return sourcev1.OIDCIdentityMatch{Issuer: `^https://tokens\.forge\.example$`, Subject: `^https://forge\.example/team/app/`}
}

// ociRoot names the Secret with the trusted root of keyless signatures.
func ociRoot(secret string) ociChange {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.Verify.TrustedRootSecretRef = &meta.LocalObjectReference{Name: secret}
	}
}

// signed is a repository whose manifests can be signed.
type signed struct {
	*registry.Fixture
	repository *registry.Edited
}

func newSigned(t *testing.T) signed {
	t.Helper()
	r := registry.ForTest(t, registry.Options{})
	return signed{r, r.Repository("team/app")}
}

// artifact is the manifest as signatures name it.
func (r signed) artifact(manifest ocispec.Descriptor) verify.Artifact {
	return verify.Artifact{Repository: r.Host() + "/team/app", Descriptor: manifest}
}

// attach puts a signature where the referrers API finds it.
func (r signed) attach(manifest ocispec.Descriptor, artifactType string, signature verify.Signature) {
	r.repository.Attach(manifest, attachment(artifactType, signature))
}

func attachment(artifactType string, signature verify.Signature) registry.Attachment {
	return registry.Attachment{ArtifactType: artifactType, MediaType: signature.MediaType, Content: signature.Content}
}

// layerOf is a signature as cosign puts it under its tag.
func layerOf(signature verify.Signature) registry.Layer {
	return registry.Layer{MediaType: signature.MediaType, Content: signature.Content, Annotations: signature.Annotations}
}

const (
	bundleType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	notationType = "application/vnd.cncf.notary.signature"
)

// proven waits until the object is ready at the revision and says that its signature was verified.
func (s ociScene) proven(name, revision string) *sourcev1.OCIRepository {
	s.t.Helper()
	obj := s.ready(name, revision)
	verified := conditions.Get(obj, sourcev1.SourceVerifiedCondition)
	if verified == nil || verified.Status != metav1.ConditionTrue || verified.Reason != meta.SucceededReason ||
		verified.Message != "verified signature of revision "+revision {
		s.t.Errorf("%s is not verified: %s", name, asJSON(obj.Status.Conditions))
	}
	return obj
}

func TestOCINothingIsServedUntilItIsSigned(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	key := verifytest.NewKey(t)
	sigstore := verifytest.NewSigstore(t)
	notary := verifytest.NewNotary(t)
	s.secret("key", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	s.secret("root", map[string]string{"trusted_root.json": string(sigstore.TrustedRoot(t))})
	byKey := []ociChange{ociVerify("cosign", "key")}
	keyless := []ociChange{ociVerify("cosign", "", ociTrusted()), ociRoot("root")}
	byNotary := []ociChange{ociVerify("notation", "notary")}
	policy := map[string]string{"trustpolicy.json": string(notary.Policy(t, "strict", []string{"*"}, []string{notary.SignerIdentity()}))}
	for name, certificate := range notary.Certificates() {
		policy[name] = string(certificate)
	}
	s.secret("notary", policy)

	cases := map[string]struct {
		reason  string
		changes []ociChange
		// withoutAPI is a registry that knows no referrers.
		withoutAPI bool
		sign       func(tb testing.TB, r signed, manifest ocispec.Descriptor)
	}{
		"bundle": {"cosign's bundle, found by the referrers API.", byKey, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.attach(manifest, bundleType, key.Bundle(tb, manifest))
		}},
		"bundle-by-tag": {"A mirror that has no referrers API has a tag.", byKey, true, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.repository.AttachReferrersTag(manifest, attachment(bundleType, key.Bundle(tb, manifest)))
		}},
		"simple": {"What cosign made before.", byKey, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.repository.AttachCosignTag(manifest, layerOf(key.SimpleSigning(tb, r.Host()+"/team/app", manifest.Digest)))
		}},
		"simple-without-api": {"It needs no referrers API.", byKey, true, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.repository.AttachCosignTag(manifest, layerOf(key.SimpleSigning(tb, r.Host()+"/team/app", manifest.Digest)))
		}},
		"keyless": {"An identity that a trusted authority vouches for.", keyless, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.attach(manifest, bundleType, sigstore.Bundle(tb, r.artifact(manifest), ociSigner()))
		}},
		"keyless-simple": {"In the older form as well.", keyless, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.repository.AttachCosignTag(manifest, layerOf(sigstore.SimpleSigning(tb, r.artifact(manifest), ociSigner())))
		}},
		"notation-jws": {"A notary's signature.", byNotary, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.attach(manifest, notationType, notary.Sign(tb, manifest, verify.MediaTypeNotationJWS))
		}},
		"notation-cose": {"In the other form.", byNotary, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.attach(manifest, notationType, notary.Sign(tb, manifest, verify.MediaTypeNotationCOSE))
		}},
		"notation-by-tag": {"Found by a tag.", byNotary, true, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.repository.AttachReferrersTag(manifest, attachment(notationType, notary.Sign(tb, manifest, verify.MediaTypeNotationJWS)))
		}},
		"among-others": {"A signature by somebody else does no harm.", byKey, false, func(tb testing.TB, r signed, manifest ocispec.Descriptor) {
			tb.Helper()
			r.attach(manifest, bundleType, verifytest.NewKey(tb).Bundle(tb, manifest))
			r.attach(manifest, bundleType, key.Bundle(tb, manifest))
			r.attach(manifest, "application/vnd.example.sbom", verify.Signature{MediaType: "text/plain", Content: []byte("contents")})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s, r := s.in(t), newSigned(t)
			if c.withoutAPI {
				r.SetReferrersAPI(false)
			}
			manifest := r.repository.PushFlux("latest", module(1), nil)
			s.create(name, r.URL("team/app"), c.changes...)
			unsigned := s.failing(name, verifyFailed("no signature found"))
			if unsigned.Status.Artifact != nil || unsigned.Status.URL != "" || blobs(r.Fixture) != 0 {
				t.Errorf("without a signature %d blobs were pulled, and status is %s", blobs(r.Fixture), asJSON(unsigned.Status))
			}
			c.sign(t, r, manifest)
			s.request(name)
			s.holds(s.proven(name, at("latest", manifest)).Status.Artifact, files(module(1)))

			// The next release is not signed yet.
			next := r.repository.PushFlux("latest", module(2), nil)
			good := s.get(name)
			s.request(name)
			bad := s.failing(name, verifyFailed("no signature found"))
			s.keeps(good, bad)
			s.holds(bad.Status.Artifact, files(module(1)))
			c.sign(t, r, next)
			s.request(name)
			s.holds(s.proven(name, at("latest", next)).Status.Artifact, files(module(2)))
		})
	}
}

func TestOCIATrustThatChangesIsCheckedWithoutAPull(t *testing.T) {
	t.Parallel()
	s, r := newOCIScene(t), newSigned(t)
	first, second := verifytest.NewKey(t), verifytest.NewKey(t)
	trust := func(keys ...*verifytest.Key) {
		t.Helper()
		entries := map[string]string{}
		for i, key := range keys {
			entries["cosign-"+string(rune('a'+i))+".pub"] = string(key.PublicPEM(t))
		}
		s.secret("keys", entries)
	}
	trust(first)
	manifest := r.repository.PushFlux("latest", module(1), nil)
	revision := at("latest", manifest)
	r.attach(manifest, bundleType, first.Bundle(t, manifest))
	s.create("app", r.URL("team/app"), ociVerify("cosign", "keys"))
	s.create("pinned", r.URL("team/app"), ociVerify("cosign", "keys"), ociDigest(manifest))
	revisions := map[string]string{"app": revision, "pinned": manifest.Digest.String()}
	good := map[string]*sourcev1.OCIRepository{}
	for name, revision := range revisions {
		good[name] = s.proven(name, revision)
	}
	pulled := func(what string) {
		t.Helper()
		for _, request := range r.Requests() {
			if request.Kind == registry.Blob && request.Reference == s.layerDigest(module(1)) {
				t.Errorf("%s pulled the layer again", what)
			}
		}
		r.Reset()
	}
	step := func(what string, check func(name, revision string) *sourcev1.OCIRepository) {
		t.Helper()
		for name, revision := range revisions {
			s.request(name)
			obj := check(name, revision)
			sameOCIArtifact(t, good[name], obj)
			s.holds(obj.Status.Artifact, files(module(1)))
		}
		pulled(what)
	}
	for name, polls := range map[string]int{"app": 1, "pinned": 0} {
		r.Reset()
		if s.reconcile(name); r.Count() != polls {
			t.Errorf("%s was looked at by %d requests, want %d: %+v", name, r.Count(), polls, r.Requests())
		}
	}
	r.Reset()

	trust(second, first)
	checksum := good["app"].Status.ContentConfigChecksum
	step("another key", func(name, revision string) *sourcev1.OCIRepository {
		return s.until(name, "is verified under the new keys", func(obj *sourcev1.OCIRepository) bool {
			return conditions.IsReady(obj) && conditions.IsTrue(obj, sourcev1.SourceVerifiedCondition) &&
				obj.Status.ContentConfigChecksum != checksum && obj.Status.Artifact.Revision == revision
		})
	})
	trust(second)
	step("distrust", func(name, _ string) *sourcev1.OCIRepository {
		return s.failing(name, verifyFailed("none of 1 signatures is by a trusted signer"))
	})
	s.dropSecret("keys")
	step("a Secret that is gone", func(name, _ string) *sourcev1.OCIRepository {
		return s.failing(name, verifyFailed("secret '"+s.namespace+"/keys' not found"))
	})
	trust(second)
	r.attach(manifest, bundleType, second.Bundle(t, manifest))
	step("a signature by the new key", func(name, revision string) *sourcev1.OCIRepository { return s.proven(name, revision) })
	for name := range maps.Keys(revisions) {
		s.edit(name, func(obj *sourcev1.OCIRepository) { obj.Spec.Verify = nil })
	}
	step("no demand any more", func(name, revision string) *sourcev1.OCIRepository {
		obj := s.ready(name, revision)
		if conditions.Has(obj, sourcev1.SourceVerifiedCondition) {
			t.Errorf("%s still has the condition SourceVerified: %s", name, asJSON(obj.Status.Conditions))
		}
		return obj
	})
}

func (s ociScene) layerDigest(contents map[string]string) string {
	s.t.Helper()
	return registry.Layer{Content: s.gzipped(contents)}.Descriptor().Digest.String()
}

// Notation asks where certificates say whether they are revoked. That has to end in time, too.
func TestOCIARevokedSignerIsNotTrusted(t *testing.T) {
	t.Parallel()
	s, r := newOCIScene(t), newSigned(t)
	notary := verifytest.NewRevocableNotary(t)
	entries := map[string]string{"trustpolicy.json": string(notary.Policy(t, "strict", []string{"*"}, []string{notary.SignerIdentity()}))}
	for name, certificate := range notary.Certificates() {
		entries[name] = string(certificate)
	}
	s.secret("notary", entries)
	manifest := r.repository.PushFlux("latest", module(1), nil)
	r.attach(manifest, notationType, notary.Sign(t, manifest, verify.MediaTypeNotationJWS))
	s.create("app", r.URL("team/app"), ociVerify("notation", "notary"), ociWithin(time.Minute))
	good := s.proven("app", at("latest", manifest))

	notary.Revoke()
	next := r.repository.PushFlux("latest", module(2), nil)
	r.attach(next, notationType, notary.Sign(t, next, verify.MediaTypeNotationJWS))
	s.request("app")
	s.keeps(good, s.failing("app", verifyFailed("revoked")))
}
