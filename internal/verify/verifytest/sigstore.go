package verifytest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"sluice.dev/sluice/internal/verify"
)

// Sigstore is a certificate authority with an intermediate, a certificate log, a transparency log and a timestamp
// authority of its own. It was in use until a year after Noon.
type Sigstore struct {
	root, issuing *authority
	certificates  *ecdsa.PrivateKey
	log           *transparencyLog
	timestamps    *timestampAuthority
}

// NewSigstore makes a sigstore.
func NewSigstore(t testing.TB) *Sigstore {
	t.Helper()
	from, until := Noon().AddDate(-2, 0, 0), Noon().AddDate(1, 0, 0)
	s := &Sigstore{certificates: newECKey(t), log: newTransparencyLog(t), timestamps: newTimestampAuthority(t, from)}
	s.root = newAuthority(t, "root", nil, from, until)
	s.issuing = newAuthority(t, "issuing", s.root, from, until, x509.ExtKeyUsageCodeSigning)
	return s
}

// TrustedRoot is the trusted_root.json by which everything that this sigstore signs is proved.
func (s *Sigstore) TrustedRoot(t testing.TB) []byte {
	t.Helper()
	return s.trustedRoot(t, true, true)
}

// TrustedRootWithoutCT knows no certificate log, as private deployments often do.
func (s *Sigstore) TrustedRootWithoutCT(t testing.TB) []byte {
	t.Helper()
	return s.trustedRoot(t, false, true)
}

// TrustedRootWithoutIntermediate leaves it to signatures to bring the certificate between root and signer.
func (s *Sigstore) TrustedRootWithoutIntermediate(t testing.TB) []byte {
	t.Helper()
	return s.trustedRoot(t, true, false)
}

func (s *Sigstore) trustedRoot(t testing.TB, certificateLog, intermediate bool) []byte {
	t.Helper()
	from := Noon().AddDate(-2, 0, 0)
	logs := func(public crypto.PublicKey, address string) map[string]*root.TransparencyLog {
		id := keyID(t, public)
		return map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
			BaseURL: address, ID: id[:], ValidityPeriodStart: from,
			HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256, PublicKey: public,
		}}
	}
	certificateLogs := map[string]*root.TransparencyLog{}
	if certificateLog {
		certificateLogs = logs(s.certificates.Public(), "https://certificates.example")
	}
	var above []*x509.Certificate
	if intermediate {
		above = append(above, s.issuing.certificate)
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{
			Root: s.root.certificate, Intermediates: above,
			ValidityPeriodStart: from, URI: "https://authority.example",
		}},
		certificateLogs,
		[]root.TimestampingAuthority{s.timestamps.trusted(from)},
		logs(s.log.key.Public(), "https://"+logHost))
	if err != nil {
		t.Fatalf("make a trusted root: %v", err)
	}
	encoded, err := trusted.MarshalJSON()
	if err != nil {
		t.Fatalf("encode a trusted root: %v", err)
	}
	return encoded
}

// Signing says who signs and what goes wrong with it; its zero value is refused for want of an identity.
type Signing struct {
	// Identity is an email address or a URI; Issuer is who proved it.
	Identity, Issuer string
	// IssuedAt is when the certificate begins; zero means Noon.
	IssuedAt time.Time
	// LoggedAt is the transparency log's time; zero means a minute after IssuedAt.
	LoggedAt time.Time
	// Timestamp adds a timestamp of the timestamp authority, at LoggedAt.
	Timestamp bool
	// NoPromise leaves out the transparency log's promise, and so its time, from a bundle.
	NoPromise bool
	// NoLog leaves out the transparency log.
	NoLog bool
	// NoCertificateLog leaves out the certificate log.
	NoCertificateLog bool
	// Chain puts the certificate between root and signer into a bundle; simple signatures always have it.
	Chain bool
	// LogVersion2 has the transparency log of the second version record a bundle: it promises nothing and tells no
	// time, so that Timestamp is needed.
	LogVersion2 bool
	// Kind is the kind of the short-lived key; empty means P256.
	Kind Kind
}

func (by Signing) at() (issued, logged time.Time) {
	issued, logged = by.IssuedAt, by.LoggedAt
	if issued.IsZero() {
		issued = Noon()
	}
	if logged.IsZero() {
		logged = issued.Add(time.Minute)
	}
	return issued, logged
}

// Bundle signs the artifact as cosign does since version 3.
func (s *Sigstore) Bundle(t testing.TB, artifact verify.Artifact, by Signing) verify.Signature {
	t.Helper()
	return s.SignStatement(t, Statement(t, PredicateSign, artifact.Descriptor.Digest), by)
}

// SignStatement signs any bytes as an in-toto statement in a bundle.
func (s *Sigstore) SignStatement(t testing.TB, statement []byte, by Signing) verify.Signature {
	t.Helper()
	return s.bundle(t, &sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}, by)
}

// MessageBundle signs the manifest's bytes as a message signature in a bundle.
func (s *Sigstore) MessageBundle(t testing.TB, manifest []byte, by Signing) verify.Signature {
	t.Helper()
	return s.bundle(t, &sign.PlainData{Data: manifest}, by)
}

func (s *Sigstore) bundle(t testing.TB, content sign.Content, by Signing) verify.Signature {
	t.Helper()
	_, logged := by.at()
	options := sign.BundleOptions{Context: t.Context(), CertificateProvider: issuing{t: t, sigstore: s, by: by}}
	if by.Chain {
		options.CertificateChainProvider = issuing{t: t, sigstore: s, by: by}
	}
	switch {
	case by.NoLog:
	case by.LogVersion2:
		options.TransparencyLogs = []sign.Transparency{recorder2{log: s.log}}
	default:
		options.TransparencyLogs = []sign.Transparency{recorder{log: s.log, at: logged, noPromise: by.NoPromise}}
	}
	made, err := sign.Bundle(content, newKeypair(t, by.kind()), options)
	if err != nil {
		t.Fatalf("sign a bundle: %v", err)
	}
	if by.Timestamp {
		raw := made.GetMessageSignature().GetSignature()
		if envelope := made.GetDsseEnvelope(); envelope != nil {
			raw = envelope.GetSignatures()[0].GetSig()
		}
		made.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: s.timestamps.stamp(t, raw, logged)}},
		}
	}
	return bundled(t, made)
}

func (by Signing) kind() Kind {
	if by.Kind == "" {
		return P256
	}
	return by.Kind
}

// issuing is the certificate authority as the bundle signer asks it.
type issuing struct {
	t        testing.TB
	sigstore *Sigstore
	by       Signing
}

// GetCertificate issues a certificate for the key.
func (i issuing) GetCertificate(_ context.Context, pair sign.Keypair, _ *sign.CertificateProviderOptions) ([]byte, error) {
	return i.sigstore.certificate(i.t, pair.GetPublicKey(), i.by).Raw, nil
}

// GetCertificateChain issues a certificate for the key and adds those above it, but the root.
func (i issuing) GetCertificateChain(_ context.Context, pair sign.Keypair, _ *sign.CertificateProviderOptions) ([][]byte, error) {
	return [][]byte{i.sigstore.certificate(i.t, pair.GetPublicKey(), i.by).Raw, i.sigstore.issuing.certificate.Raw}, nil
}

// BundleByKey signs the artifact with a key, and has the transparency log record it.
func (s *Sigstore) BundleByKey(t testing.TB, artifact verify.Artifact, key *Key) verify.Signature {
	t.Helper()
	content := &sign.DSSEData{Data: Statement(t, PredicateSign, artifact.Descriptor.Digest), PayloadType: "application/vnd.in-toto+json"}
	made, err := sign.Bundle(content, key.pair, sign.BundleOptions{
		Context: t.Context(), TransparencyLogs: []sign.Transparency{recorder{log: s.log, at: Noon()}},
	})
	if err != nil {
		t.Fatalf("sign a bundle: %v", err)
	}
	return bundled(t, made)
}

func (s *Sigstore) certificate(t testing.TB, public crypto.PublicKey, by Signing) *x509.Certificate {
	t.Helper()
	issued, _ := by.at()
	certificates := s.certificates
	if by.NoCertificateLog {
		certificates = nil
	}
	return s.issuing.issueIdentity(t, by.Identity, by.Issuer, issued, public, certificates)
}

// SimpleSigning signs the artifact as cosign did before version 3, with all that belongs to it in annotations.
func (s *Sigstore) SimpleSigning(t testing.TB, artifact verify.Artifact, by Signing) verify.Signature {
	t.Helper()
	return s.SignPayload(t, SimplePayload(artifact.Repository, artifact.Descriptor.Digest), by)
}

// SignPayload signs any bytes as a simple-signing payload.
func (s *Sigstore) SignPayload(t testing.TB, payload []byte, by Signing) verify.Signature {
	t.Helper()
	_, logged := by.at()
	pair := newKeypair(t, by.kind())
	raw, _, err := pair.SignData(t.Context(), payload)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	certificate := pemOf(s.certificate(t, pair.GetPublicKey(), by))
	annotations := map[string]string{
		verify.AnnotationSignature:   base64.StdEncoding.EncodeToString(raw),
		verify.AnnotationCertificate: certificate,
		verify.AnnotationChain:       pemOf(s.issuing.certificate) + pemOf(s.root.certificate),
	}
	if !by.NoLog {
		sum := sha256.Sum256(payload)
		body, err := hashedBody(sum[:], raw, []byte(certificate))
		if err != nil {
			t.Fatalf("encode a log entry: %v", err)
		}
		entry, signed, err := s.log.promise(body, logged)
		if err != nil {
			t.Fatalf("sign a log's promise: %v", err)
		}
		annotations[verify.AnnotationBundle] = string(mustJSON(t, object{"SignedEntryTimestamp": signed, "Payload": entry}))
	}
	if by.Timestamp {
		annotations[verify.AnnotationTimestamp] = string(mustJSON(t, object{"SignedRFC3161Timestamp": s.timestamps.stamp(t, raw, logged)}))
	}
	return verify.Signature{MediaType: verify.MediaTypeSimpleSigning, Content: payload, Annotations: annotations}
}

func pemOf(certificate *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}
