package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/notaryproject/notation-core-go/signature"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// fewestForgeries is how many there have to be at least.
const fewestForgeries = 100

// ociForgeries are signatures of one manifest that prove nothing, and one that does.
type ociForgeries struct {
	changes []ociChange
	// artifactType is what the referrers API is asked for; empty for signatures under cosign's tag.
	artifactType string
	forged       []verify.Signature
	genuine      verify.Signature
}

func TestOCINoForgeryIsAccepted(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	kinds := forgedByKeys()
	kinds["keyless"], kinds["keyless-simple"] = keylessForgeries, keylessSimpleForgeries
	noForgery(t, s, kinds, forgery{
		layer: s.layerDigest(module(1)),
		push:  func(r signed) ocispec.Descriptor { return r.repository.PushFlux("latest", module(1), nil) },
		follow: func(s ociScene, name string, r signed, f ociForgeries) {
			s.create(name, r.URL("team/app"), f.changes...)
		},
		refused: func(s ociScene, name, says string) *meta.Artifact {
			return s.failing(name, verifyFailed(says)).Status.Artifact
		},
		proven: func(s ociScene, name string, manifest ocispec.Descriptor) {
			s.request(name)
			s.proven(name, at("latest", manifest))
		},
	})
}

// forgedByKeys are forgeries for those who trust keys and certificates of their own.
func forgedByKeys() map[string]func(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries {
	return map[string]func(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries{
		"bundle": bundleForgeries,
		"simple": simpleForgeries,
		"notation-jws": func(t *testing.T, s ociScene, _ signed, manifest ocispec.Descriptor) ociForgeries {
			t.Helper()
			return notationForgeries(t, s, manifest, verify.MediaTypeNotationJWS)
		},
		"notation-cose": func(t *testing.T, s ociScene, _ signed, manifest ocispec.Descriptor) ociForgeries {
			t.Helper()
			return notationForgeries(t, s, manifest, verify.MediaTypeNotationCOSE)
		},
	}
}

// forgery is how a kind of object follows what somebody may have forged a signature of.
type forgery struct {
	layer   string // the digest that nobody may ask for before it is proven
	push    func(r signed) ocispec.Descriptor
	follow  func(s ociScene, name string, r signed, f ociForgeries)
	refused func(s ociScene, name, says string) *meta.Artifact
	proven  func(s ociScene, name string, manifest ocispec.Descriptor)
}

// noForgery tries all forgeries on objects of a kind, and then one signature that is none.
func noForgery(
	t *testing.T, s ociScene, kinds map[string]func(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries, on forgery,
) {
	t.Helper()
	tried := 0
	for name, forge := range kinds {
		t.Run(name, func(t *testing.T) {
			s, r := s.in(t), newSigned(t)
			manifest := on.push(r)
			f := forge(t, s, r, manifest)
			f.push(r, manifest, f.forged...)
			on.follow(s, name, r, f)
			if served := on.refused(s, name, fmt.Sprintf("none of %d signatures is by a trusted signer", len(f.forged))); served != nil {
				t.Errorf("a forgery is served: %s", asJSON(served))
			}
			for _, request := range r.Requests() {
				if request.Reference == on.layer {
					t.Errorf("the layer was asked for before anybody vouched for it: %s %s", request.Method, request.URI)
				}
			}
			tried += len(f.forged)

			// It was not for another reason that they were refused.
			f.push(r, manifest, append(f.forged, f.genuine)...)
			on.proven(s, name, manifest)
		})
	}
	if t.Logf("%d forgeries", tried); tried < fewestForgeries {
		t.Errorf("only %d forgeries were tried, want %d", tried, fewestForgeries)
	}
}

// push attaches signatures where they are looked for. Those under a tag come all at once, the others one by one.
func (f ociForgeries) push(r signed, manifest ocispec.Descriptor, signatures ...verify.Signature) {
	if f.artifactType == "" {
		layers := make([]registry.Layer, 0, len(signatures))
		for _, signature := range signatures {
			layers = append(layers, layerOf(signature))
		}
		r.repository.AttachCosignTag(manifest, layers...)
		return
	}
	for i, signature := range signatures {
		attached := attachment(f.artifactType, signature)
		attached.Annotations = map[string]string{"org.example.number": fmt.Sprint(i)}
		r.repository.Attach(manifest, attached)
	}
}

// spoilt are a signature's ruins.
func spoilt(genuine verify.Signature) []verify.Signature {
	content := string(genuine.Content)
	ruins := []string{
		content[:len(content)/100+1], content[:len(content)/10], content[:len(content)/2], content[:len(content)*9/10], content[:len(content)-1],
		content + content, "null", "{}", "[" + content + "]", strings.Repeat("[", 50_000),
	}
	signatures := make([]verify.Signature, 0, len(ruins)+1)
	for _, ruin := range ruins {
		signatures = append(signatures, containing(genuine, ruin))
	}
	mistyped := genuine
	mistyped.MediaType = "application/json"
	return append(signatures, mistyped)
}

func containing(genuine verify.Signature, content string) verify.Signature {
	genuine.Content = []byte(content)
	return genuine
}

// annotated is the signature with another annotation; an empty value takes it away.
func annotated(genuine verify.Signature, name, value string) verify.Signature {
	genuine.Annotations = maps.Clone(genuine.Annotations)
	genuine.Annotations[name] = value
	if value == "" {
		delete(genuine.Annotations, name)
	}
	return genuine
}

// spliced puts a part of another bundle, by its path, into the genuine one.
func spliced(t *testing.T, genuine, other verify.Signature, path ...string) verify.Signature {
	t.Helper()
	var into, from map[string]any
	for content, document := range map[*map[string]any][]byte{&into: genuine.Content, &from: other.Content} {
		if err := json.Unmarshal(document, content); err != nil {
			t.Fatal(err)
		}
	}
	whole := into
	for _, name := range path[:len(path)-1] {
		below, ok := into[name].(map[string]any)
		theirs, same := from[name].(map[string]any)
		if !ok || !same {
			t.Fatalf("no %q in both bundles", name)
		}
		into, from = below, theirs
	}
	last := path[len(path)-1]
	if from[last] == nil || asJSON(into[last]) == asJSON(from[last]) {
		t.Fatalf("both bundles have the same %q", last)
	}
	into[last] = from[last]
	return containing(genuine, asJSON(whole))
}

// anotherManifest describes something that is not there.
func anotherManifest(number int) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString(fmt.Sprint("another", number)), Size: 500}
}

func bundleForgeries(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries {
	t.Helper()
	key, other := verifytest.NewKey(t), verifytest.NewKey(t)
	s.secret("bundle", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	f := ociForgeries{changes: []ociChange{ociVerify("cosign", "bundle")}, artifactType: bundleType, genuine: key.Bundle(t, manifest)}
	f.forged = append(spoilt(f.genuine),
		other.Bundle(t, manifest), other.MessageBundle(t, []byte("another")), key.MessageBundle(t, []byte("another")),
		key.EmptyMessage(t, manifest.Digest), verifytest.NewSigstore(t).Bundle(t, r.artifact(manifest), ociSigner()),
	)
	for i := range 3 {
		f.forged = append(f.forged, key.Bundle(t, anotherManifest(i)))
	}
	for _, path := range [][]string{{"dsseEnvelope", "payload"}, {"dsseEnvelope", "signatures"}} {
		f.forged = append(f.forged, spliced(t, f.genuine, other.Bundle(t, anotherManifest(0)), path...),
			spliced(t, f.genuine, key.Bundle(t, anotherManifest(0)), path...))
	}
	stated := string(verifytest.Statement(t, verifytest.PredicateSign, manifest.Digest))
	for _, statement := range []string{
		string(verifytest.Statement(t, "https://slsa.dev/provenance/v1", manifest.Digest)),
		string(verifytest.Statement(t, "https://spdx.dev/Document", manifest.Digest)),
		strings.Replace(stated, `"sha256"`, `"sha512"`, 1),
		strings.Replace(stated, `"subject"`, `"object"`, 1),
		strings.Replace(stated, `"subject":`, `"subject":[],"subject":`, 1),
		stated + "{}", "signed words",
	} {
		f.forged = append(f.forged, key.SignStatement(t, []byte(statement)))
	}
	return f
}

func simpleForgeries(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries {
	t.Helper()
	key, other := verifytest.NewKey(t), verifytest.NewKey(t)
	repository := r.Host() + "/team/app"
	s.secret("simple", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	f := ociForgeries{changes: []ociChange{ociVerify("cosign", "simple")}, genuine: key.SimpleSigning(t, repository, manifest.Digest)}
	f.forged = append(spoilt(f.genuine),
		other.SimpleSigning(t, repository, manifest.Digest),
		key.SimpleSigning(t, repository, anotherManifest(0).Digest),
		key.SimpleSigning(t, r.Host()+"/team/other", manifest.Digest),
		key.SimpleSigning(t, "registry.example.org/team/app", manifest.Digest),
		key.SimpleSigning(t, repository+"/more", manifest.Digest),
		annotated(f.genuine, verify.AnnotationSignature, "%%%"),
		annotated(f.genuine, verify.AnnotationSignature, key.SignPayload(t, []byte("{}")).Annotations[verify.AnnotationSignature]),
		containing(other.SimpleSigning(t, repository, manifest.Digest), string(f.genuine.Content)),
	)
	payload := string(f.genuine.Content)
	for _, changed := range []string{
		strings.Replace(payload, "cosign container image signature", "atomic container signature", 1),
		strings.Replace(payload, repository, "team/app", 1),
		strings.Replace(payload, manifest.Digest.String(), manifest.Digest.String()[:40], 1),
		strings.Replace(payload, `"image":{`, `"image":{"docker-manifest-digest":"sha256:00",`, 1),
		strings.Replace(payload, `{"critical"`, `{"critical":{},"critical"`, 1),
		payload + "{}",
	} {
		f.forged = append(f.forged, key.SignPayload(t, []byte(changed)))
	}
	return f
}

// keylessSigners are signers that are not trusted.
func keylessSigners() []verifytest.Signing {
	made := []verifytest.Signing{}
	for _, change := range []func(*verifytest.Signing){
		func(by *verifytest.Signing) { by.Identity = "https://forge.example/mallory/app/" },
		func(by *verifytest.Signing) { by.Identity = "https://evil.example/?https://forge.example/team/app/" },
		func(by *verifytest.Signing) { by.Identity = "release@forge.example" },
		func(by *verifytest.Signing) { by.Issuer = "https://tokens.evil.example" },
		func(by *verifytest.Signing) { by.Issuer = ociIssuer + ".evil.example" },
		func(by *verifytest.Signing) { by.LoggedAt = verifytest.Noon().Add(time.Hour) },
		func(by *verifytest.Signing) { by.LoggedAt = verifytest.Noon().Add(-time.Hour) },
		func(by *verifytest.Signing) { by.IssuedAt = verifytest.Noon().AddDate(-3, 0, 0) },
		func(by *verifytest.Signing) { by.IssuedAt = verifytest.Noon().AddDate(3, 0, 0) },
		func(by *verifytest.Signing) { by.NoLog = true },
		func(by *verifytest.Signing) { by.NoLog, by.Timestamp = true, true },
		func(by *verifytest.Signing) { by.NoCertificateLog = true },
	} {
		by := ociSigner()
		change(&by)
		made = append(made, by)
	}
	return made
}

func keylessForgeries(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries {
	t.Helper()
	sigstore, foreign := verifytest.NewSigstore(t), verifytest.NewSigstore(t)
	s.secret("keyless", map[string]string{"trusted_root.json": string(sigstore.TrustedRoot(t))})
	artifact, other := r.artifact(manifest), r.artifact(anotherManifest(0))
	f := ociForgeries{
		changes:      []ociChange{ociVerify("cosign", "", ociTrusted()), ociRoot("keyless")},
		artifactType: bundleType, genuine: sigstore.Bundle(t, artifact, ociSigner()),
	}
	f.forged = append(spoilt(f.genuine),
		foreign.Bundle(t, artifact, ociSigner()), sigstore.Bundle(t, other, ociSigner()), verifytest.NewKey(t).Bundle(t, manifest),
		spliced(t, f.genuine, sigstore.Bundle(t, other, ociSigner()), "dsseEnvelope"),
		spliced(t, f.genuine, sigstore.Bundle(t, other, ociSigner()), "verificationMaterial", "tlogEntries"),
		spliced(t, f.genuine, foreign.Bundle(t, artifact, ociSigner()), "verificationMaterial"),
		spliced(t, f.genuine, foreign.Bundle(t, artifact, ociSigner()), "verificationMaterial", "tlogEntries"),
		spliced(t, f.genuine, foreign.Bundle(t, artifact, ociSigner()), "verificationMaterial", "certificate"),
	)
	for _, by := range keylessSigners() {
		f.forged = append(f.forged, sigstore.Bundle(t, artifact, by))
	}
	return f
}

func keylessSimpleForgeries(t *testing.T, s ociScene, r signed, manifest ocispec.Descriptor) ociForgeries {
	t.Helper()
	sigstore, foreign := verifytest.NewSigstore(t), verifytest.NewSigstore(t)
	s.secret("keyless-simple", map[string]string{"trusted_root.json": string(sigstore.TrustedRoot(t))})
	artifact := r.artifact(manifest)
	f := ociForgeries{
		changes: []ociChange{ociVerify("cosign", "", ociTrusted()), ociRoot("keyless-simple")},
		genuine: sigstore.SimpleSigning(t, artifact, ociSigner()),
	}
	elsewhere := artifact
	elsewhere.Repository = r.Host() + "/team/other"
	f.forged = append(spoilt(f.genuine),
		foreign.SimpleSigning(t, artifact, ociSigner()), sigstore.SimpleSigning(t, r.artifact(anotherManifest(0)), ociSigner()),
		sigstore.SimpleSigning(t, elsewhere, ociSigner()),
	)
	again := sigstore.SimpleSigning(t, artifact, ociSigner())
	for _, name := range []string{verify.AnnotationSignature, verify.AnnotationCertificate, verify.AnnotationBundle} {
		f.forged = append(f.forged, annotated(f.genuine, name, ""), annotated(f.genuine, name, "malformed"), annotated(f.genuine, name, again.Annotations[name]))
	}
	for _, by := range keylessSigners() {
		f.forged = append(f.forged, sigstore.SimpleSigning(t, artifact, by))
	}
	return f
}

func notationForgeries(t *testing.T, s ociScene, manifest ocispec.Descriptor, mediaType string) ociForgeries {
	t.Helper()
	notary, other, late := verifytest.NewNotary(t), verifytest.NewNotary(t), verifytest.NewExpiredNotary(t)
	name := "notation-" + fmt.Sprintf("%x", digest.FromString(mediaType).Encoded()[:6])
	entries := map[string]string{"trustpolicy.json": string(notary.Policy(t, "strict", []string{"*"}, []string{notary.SignerIdentity()}))}
	for name, certificate := range notary.Certificates() {
		entries[name] = string(certificate)
	}
	s.secret(name, entries)
	f := ociForgeries{
		changes: []ociChange{ociVerify("notation", name)}, artifactType: notationType, genuine: notary.Sign(t, manifest, mediaType),
	}
	now := time.Now()
	f.forged = append(spoilt(f.genuine), other.Sign(t, manifest, mediaType),
		late.SignEnvelope(t, manifest, mediaType, verifytest.Envelope{SignedAt: now.Add(-2 * time.Hour)}))
	for i := range 3 {
		f.forged = append(f.forged, notary.Sign(t, anotherManifest(i), mediaType))
	}
	for _, made := range []verifytest.Envelope{
		{SignedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(-time.Hour)},
		{ContentType: "application/json"},
		{Payload: []byte("{}")},
		{Payload: fmt.Appendf(nil, `{"targetArtifact":{"mediaType":%q,"digest":%q,"size":1}}`, manifest.MediaType, manifest.Digest)},
		{Attributes: []signature.Attribute{{Key: "example.approvedBy", Critical: true, Value: "nobody"}}},
		{Attributes: []signature.Attribute{{Key: "io.cncf.notary.verificationPlugin", Critical: true, Value: "example"}}},
	} {
		f.forged = append(f.forged, notary.SignEnvelope(t, manifest, mediaType, made))
	}
	if mediaType == verify.MediaTypeNotationJWS {
		theirs := notary.Sign(t, anotherManifest(0), mediaType)
		for _, part := range []string{"payload", "signature"} {
			f.forged = append(f.forged, spliced(t, f.genuine, theirs, part))
		}
		f.forged = append(f.forged, spliced(t, f.genuine, other.Sign(t, manifest, mediaType), "header"))
		return f
	}
	for _, part := range []int{20, 30, 50} {
		changed := bytes.Clone(f.genuine.Content)
		changed[len(changed)*part/1000] ^= 0x41 // In the protected header and in the payload behind it.
		f.forged = append(f.forged, containing(f.genuine, string(changed)))
	}
	return f
}
