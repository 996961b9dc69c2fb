package verify_test

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

func byNotary(t *testing.T, mediaType string) *scene {
	t.Helper()
	notary := verifytest.NewNotary(t)
	artifact := verifytest.Artifact(repository, manifest)
	s := &scene{name: "notation " + mediaType, verifier: withNotary(t, notary, "strict"), artifact: artifact, signature: notary.Sign(t, artifact.Descriptor, mediaType)}
	other := verifytest.NewNotary(t)
	s.forge("other notary", other.Sign(t, artifact.Descriptor, mediaType))
	s.under("other certificates", withNotary(t, other, "strict"))
	s.about("repository out of scope", verifytest.Artifact("registry.example:5000/team/other", manifest))
	s.about("repository is no scope", verifytest.Artifact("no scope", manifest))
	sized := artifact
	sized.Descriptor.Size++
	s.about("other size", sized)
	typed := artifact
	typed.Descriptor.MediaType = "application/vnd.oci.image.index.v1+json"
	s.about("other media type", typed)
	for name, identity := range map[string]string{
		"other name":    "x509.subject: C=AQ, ST=Ross, O=example, CN=somebody",
		"other country": "x509.subject: C=US, ST=Ross, O=example, CN=signer",
		"authority":     "x509.subject: C=AQ, ST=Ross, O=example, CN=notary",
	} {
		policy := notary.Policy(t, "strict", []string{"*"}, []string{identity})
		v, err := verify.NewNotation(policy, notary.Certificates(), offline(t))
		if err != nil {
			t.Fatalf("NewNotation: %v", err)
		}
		s.under("trusts "+name, v)
	}
	skipping, err := verify.NewNotation(notary.Policy(t, "skip", []string{"*"}, nil), notary.Certificates(), offline(t))
	if err != nil {
		t.Fatalf("NewNotation: %v", err)
	}
	s.under("policy that skips", skipping)
	s.envelopes(t, notary, artifact, mediaType)
	if mediaType == verify.MediaTypeNotationJWS {
		s.tamper(t, "io.cncf.notary.signingAgent")
		return s
	}
	// What comes after the certificates is the name of the signing software, which nobody signs.
	content := s.signature.Content
	for i := 0; i < len(content); i += 11 {
		changed := append([]byte{}, content...)
		changed[i] ^= 0x41
		if isAgent(content, i) {
			continue
		}
		s.forge("byte "+strconv.Itoa(i), containing(s.signature, string(changed)))
	}
	return s
}

func (s *scene) envelopes(t *testing.T, notary *verifytest.Notary, artifact verify.Artifact, mediaType string) {
	t.Helper()
	now := time.Now()
	for name, made := range map[string]verifytest.Envelope{
		"expired":            {SignedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(-time.Hour)},
		"other content type": {ContentType: "application/json"},
		"empty payload":      {Payload: []byte("{}")},
		"other artifact":     {Payload: []byte(`{"targetArtifact":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:00","size":1}}`)},
		"critical attribute": {Attributes: []signature.Attribute{{Key: "example.approvedBy", Critical: true, Value: "nobody"}}},
		"plugin": {Attributes: []signature.Attribute{
			{Key: "io.cncf.notary.verificationPlugin", Critical: true, Value: "example"},
		}},
	} {
		s.forge(name, notary.SignEnvelope(t, artifact.Descriptor, mediaType, made))
	}
	late := verifytest.NewExpiredNotary(t)
	s.forge("expired signer of another notary", late.SignEnvelope(t, artifact.Descriptor, mediaType, verifytest.Envelope{SignedAt: now.Add(-2 * time.Hour)}))
	s.under("expired signer", withNotary(t, late, "strict"))
}

// isAgent says whether the byte belongs to the name of the signing software, or to the length before it.
func isAgent(content []byte, i int) bool {
	const key, agent = "io.cncf.notary.signingAgent", "notation-go/"
	from := bytes.Index(content, []byte(key))
	name := bytes.Index(content, []byte(agent))
	return from >= 0 && i >= from-2 && i < name+len(agent)+8
}
