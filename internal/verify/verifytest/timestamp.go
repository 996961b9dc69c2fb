package verifytest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/notaryproject/tspclient-go"
	"github.com/sigstore/sigstore-go/pkg/root"
)

// timestampAuthority signs when it saw a signature (RFC 3161).
type timestampAuthority struct {
	root *authority
	leaf *authority
}

func newTimestampAuthority(t testing.TB, from time.Time) *timestampAuthority {
	t.Helper()
	// The library that signs timestamps adds the system's time to them, which must be within the certificate's.
	until := from.AddDate(100, 0, 0)
	made := &timestampAuthority{
		root: newAuthority(t, "timestamps", nil, from, until, x509.ExtKeyUsageTimeStamping),
		leaf: &authority{key: newECKey(t)},
	}
	// The use must be critical, which the standard library does not make it.
	use, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		t.Fatalf("encode a key usage: %v", err)
	}
	made.leaf.certificate = made.root.issue(t, &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "timestamper"}, NotBefore: from, NotAfter: until,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: use}},
	}, made.leaf.key.Public())
	return made
}

func (a *timestampAuthority) trusted(from time.Time) root.TimestampingAuthority {
	return &root.SigstoreTimestampingAuthority{
		Root: a.root.certificate, Leaf: a.leaf.certificate, ValidityPeriodStart: from, URI: "https://timestamps.example",
	}
}

// stamper is the timestamp authority as notation asks it.
type stamper struct {
	t         testing.TB
	authority *timestampAuthority
	at        time.Time
}

// Timestamp answers a request.
func (s stamper) Timestamp(_ context.Context, request *tspclient.Request) (*tspclient.Response, error) {
	encoded, err := request.MarshalBinary()
	if err != nil {
		return nil, err
	}
	at := s.at
	if at.IsZero() {
		at = time.Now()
	}
	answer := &tspclient.Response{}
	return answer, answer.UnmarshalBinary(s.authority.answer(s.t, encoded, at))
}

// stamp signs that the bytes were seen at the time.
func (a *timestampAuthority) stamp(t testing.TB, seen []byte, at time.Time) []byte {
	t.Helper()
	encoded, err := timestamp.CreateRequest(bytes.NewReader(seen), &timestamp.RequestOptions{Hash: crypto.SHA256})
	if err != nil {
		t.Fatalf("ask for a timestamp: %v", err)
	}
	return a.answer(t, encoded, at)
}

func (a *timestampAuthority) answer(t testing.TB, encoded []byte, at time.Time) []byte {
	t.Helper()
	asked, err := timestamp.ParseRequest(encoded)
	if err != nil {
		t.Fatalf("ask for a timestamp: %v", err)
	}
	answer := timestamp.Timestamp{
		HashAlgorithm: asked.HashAlgorithm, HashedMessage: asked.HashedMessage, Time: at,
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, Nonce: asked.Nonce, AddTSACertificate: asked.Certificates,
		Certificates: []*x509.Certificate{a.root.certificate},
	}
	signed, err := answer.CreateResponseWithOpts(a.leaf.certificate, a.leaf.key, crypto.SHA256)
	if err != nil {
		t.Fatalf("sign a timestamp: %v", err)
	}
	return signed
}
