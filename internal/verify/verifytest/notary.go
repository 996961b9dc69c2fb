package verifytest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/signer"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/verify"
)

// day is how long before and after the present a notary's certificates are good. notation judges by the system's
// clock, so that a notary cannot live at Noon.
const day = 24 * time.Hour

// Notary is a certificate authority and a signer of the Notary Project.
type Notary struct {
	authority  *authority
	leaf       *x509.Certificate
	key        *ecdsa.PrivateKey
	timestamps *timestampAuthority
	revoked    atomic.Bool
	failing    atomic.Bool
}

// NewNotary makes a notary whose signer's certificate has no means of revocation.
func NewNotary(t testing.TB) *Notary {
	t.Helper()
	return newNotary(t, time.Now().Add(day), nil)
}

// NewExpiredNotary makes a notary whose signer's certificate expired an hour ago.
func NewExpiredNotary(t testing.TB) *Notary {
	t.Helper()
	return newNotary(t, time.Now().Add(-time.Hour), nil)
}

// NewRevocableNotary makes a notary that publishes a revocation list on this host; the signer's certificate says
// where.
func NewRevocableNotary(t testing.TB) *Notary {
	t.Helper()
	n := &Notary{}
	server := httptest.NewServer(http.HandlerFunc(n.serveList))
	t.Cleanup(server.Close)
	n.make(t, time.Now().Add(day), []string{server.URL + "/list.crl"})
	return n
}

func newNotary(t testing.TB, until time.Time, lists []string) *Notary {
	t.Helper()
	n := &Notary{}
	n.make(t, until, lists)
	return n
}

func (n *Notary) make(t testing.TB, until time.Time, lists []string) {
	t.Helper()
	now := time.Now()
	n.authority = newAuthority(t, "notary", nil, now.Add(-2*day), now.Add(2*day))
	n.key = newECKey(t)
	n.timestamps = newTimestampAuthority(t, now.Add(-2*day))
	n.leaf = n.authority.issue(t, &x509.Certificate{
		SerialNumber: serial(t), NotBefore: now.Add(-day), NotAfter: until,
		Subject:  pkix.Name{CommonName: "signer", Organization: []string{"example"}, Country: []string{"AQ"}, Province: []string{"Ross"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		BasicConstraintsValid: true, CRLDistributionPoints: lists,
	}, n.key.Public())
}

// Certificates are what belongs into the Secret beside the policy: the authority's and its timestamp authority's.
func (n *Notary) Certificates() map[string][]byte {
	return map[string][]byte{
		"ca.crt": []byte(pemOf(n.authority.certificate)), "tsa.pem": []byte(pemOf(n.timestamps.root.certificate)),
	}
}

// SignerIdentity is the signer as a policy's trustedIdentities name it.
func (n *Notary) SignerIdentity() string { return "x509.subject: C=AQ, ST=Ross, O=example, CN=signer" }

// Policy is a trustpolicy.json with one statement for the scopes ("*" for any repository) that trusts the
// identities ("*" for any that the authority vouches for).
func (n *Notary) Policy(t testing.TB, level string, scopes, identities []string) []byte {
	t.Helper()
	return n.PolicyWithStores(t, level, scopes, identities, "ca:any")
}

// PolicyWithStores is Policy with trust stores other than "ca:any".
func (n *Notary) PolicyWithStores(t testing.TB, level string, scopes, identities []string, stores ...string) []byte {
	t.Helper()
	stated := object{
		"name": "statement", "registryScopes": scopes, "signatureVerification": object{"level": level},
		"trustStores": stores, "trustedIdentities": identities,
	}
	return mustJSON(t, object{"version": "1.0", "trustPolicies": []any{stated}})
}

// Sign signs the manifest in an envelope of the media type, with notation's own signer.
func (n *Notary) Sign(t testing.TB, manifest ocispec.Descriptor, mediaType string) verify.Signature {
	t.Helper()
	own, err := signer.NewGenericSigner(n.key, n.chain())
	if err != nil {
		t.Fatalf("make a signer: %v", err)
	}
	envelope, _, err := own.Sign(t.Context(), manifest, notation.SignerSignOptions{SignatureMediaType: mediaType})
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return verify.Signature{MediaType: mediaType, Content: envelope}
}

func (n *Notary) chain() []*x509.Certificate {
	return []*x509.Certificate{n.leaf, n.authority.certificate}
}

// Envelope is an envelope of any kind: expired, with other attributes, or about something else.
type Envelope struct {
	// Payload is what is signed; nil means the manifest, as notation signs it.
	Payload []byte
	// ContentType is the payload's type; empty means notation's.
	ContentType string
	// SignedAt and ExpiresAt bound the signature; zero means now and never.
	SignedAt, ExpiresAt time.Time
	// Scheme is the signing scheme; empty means notary.x509.
	Scheme signature.SigningScheme
	// Timestamped adds a timestamp of the notary's timestamp authority, at StampedAt; zero means now.
	Timestamped bool
	StampedAt   time.Time
	// Attributes are added to the signed ones.
	Attributes []signature.Attribute
}

// SignEnvelope signs an envelope that notation's signer would not make.
func (n *Notary) SignEnvelope(t testing.TB, manifest ocispec.Descriptor, mediaType string, made Envelope) verify.Signature {
	t.Helper()
	own, err := signature.NewLocalSigner(n.chain(), n.key)
	if err != nil {
		t.Fatalf("make a signer: %v", err)
	}
	if made.Payload == nil {
		made.Payload = mustJSON(t, object{"targetArtifact": manifest})
	}
	if made.ContentType == "" {
		made.ContentType = "application/vnd.cncf.notary.payload.v1+json"
	}
	if made.SignedAt.IsZero() {
		made.SignedAt = time.Now()
	}
	envelope, err := signature.NewEnvelope(mediaType)
	if err != nil {
		t.Fatalf("make an envelope: %v", err)
	}
	if made.Scheme == "" {
		made.Scheme = signature.SigningSchemeX509
	}
	request := &signature.SignRequest{
		Payload: signature.Payload{ContentType: made.ContentType, Content: made.Payload},
		Signer:  own, SigningTime: made.SignedAt, Expiry: made.ExpiresAt,
		SigningScheme: made.Scheme, ExtendedSignedAttributes: made.Attributes,
	}
	if made.Timestamped {
		request.Timestamper = stamper{t: t, authority: n.timestamps, at: made.StampedAt}
		request.TSARootCAs = x509.NewCertPool()
		request.TSARootCAs.AddCert(n.timestamps.root.certificate)
	}
	encoded, err := envelope.Sign(request)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return verify.Signature{MediaType: mediaType, Content: encoded}
}

// Revoke puts the signer's certificate on the revocation list.
func (n *Notary) Revoke() { n.revoked.Store(true) }

// FailList makes the server of the revocation list answer with an error.
func (n *Notary) FailList() { n.failing.Store(true) }

func (n *Notary) serveList(w http.ResponseWriter, _ *http.Request) {
	if n.failing.Load() {
		http.Error(w, "no list", http.StatusInternalServerError)
		return
	}
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(day)}
	if n.revoked.Load() {
		list.RevokedCertificateEntries = []x509.RevocationListEntry{
			{SerialNumber: n.leaf.SerialNumber, RevocationTime: time.Now().Add(-time.Hour)},
		}
	}
	encoded, err := x509.CreateRevocationList(rand.Reader, list, n.authority.certificate, n.authority.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(encoded)
}
