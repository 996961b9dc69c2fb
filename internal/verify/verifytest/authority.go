package verifytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
)

// leafLife is how long a keyless certificate lives, as at sigstore.
const leafLife = 10 * time.Minute

// authority issues certificates: a root with its key, or what the root issued.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newECKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	return key
}

// newAuthority makes a certificate authority under its parent, or a root if that is nil.
func newAuthority(t testing.TB, name string, parent *authority, from, until time.Time, use ...x509.ExtKeyUsage) *authority {
	t.Helper()
	made := &authority{key: newECKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name, Organization: []string{"example"}, Country: []string{"AQ"}, Province: []string{"Ross"}},
		NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, ExtKeyUsage: use,
		BasicConstraintsValid: true, IsCA: true,
	}
	if parent == nil {
		parent = &authority{certificate: template, key: made.key}
	}
	made.certificate = parent.issue(t, template, made.key.Public())
	return made
}

func (a *authority) issue(t testing.TB, template *x509.Certificate, public crypto.PublicKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		t.Fatalf("issue a certificate: %v", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("parse a certificate: %v", err)
	}
	return certificate
}

// issueIdentity issues a keyless certificate as Fulcio does; with a log's key it carries the log's timestamp.
func (a *authority) issueIdentity(t testing.TB, identity, issuer string, at time.Time, public crypto.PublicKey, log *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	named, err := asn1.MarshalWithParams(issuer, "utf8")
	if err != nil {
		t.Fatalf("encode the issuer: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(t), NotBefore: at, NotAfter: at.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: named},
		},
	}
	if strings.Contains(identity, "://") {
		address, err := url.Parse(identity)
		if err != nil {
			t.Fatalf("parse the identity: %v", err)
		}
		template.URIs = []*url.URL{address}
	} else {
		template.EmailAddresses = []string{identity}
	}
	certificate := a.issue(t, template, public)
	if log == nil {
		return certificate
	}
	template.ExtraExtensions = append(template.ExtraExtensions, a.logged(t, certificate, at, log))
	return a.issue(t, template, public)
}

// logged is the extension with the certificate log's promise for a certificate that has none yet (RFC 6962, 3.3).
func (a *authority) logged(t testing.TB, certificate *x509.Certificate, at time.Time, log *ecdsa.PrivateKey) pkix.Extension {
	t.Helper()
	promise := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1, LogID: ct.LogID{KeyID: keyID(t, log.Public())}, Timestamp: uint64(at.UnixMilli()),
	}
	input, err := ct.SerializeSCTSignatureInput(promise, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		TimestampedEntry: &ct.TimestampedEntry{EntryType: ct.PrecertLogEntryType, PrecertEntry: &ct.PreCert{
			IssuerKeyHash: sha256.Sum256(a.certificate.RawSubjectPublicKeyInfo), TBSCertificate: certificate.RawTBSCertificate,
		}},
	}})
	if err != nil {
		t.Fatalf("encode a log's promise: %v", err)
	}
	signed, err := cttls.CreateSignature(*log, cttls.SHA256, input)
	if err != nil {
		t.Fatalf("sign a log's promise: %v", err)
	}
	promise.Signature = ct.DigitallySigned(signed)
	list, err := x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&promise})
	if err != nil {
		t.Fatalf("encode a list of promises: %v", err)
	}
	encoded, err := cttls.Marshal(*list)
	if err != nil {
		t.Fatalf("encode a list of promises: %v", err)
	}
	value, err := asn1.Marshal(encoded)
	if err != nil {
		t.Fatalf("encode an extension: %v", err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}
}

// keyID is how logs are named: by the hash of their public key.
func keyID(t testing.TB, public crypto.PublicKey) [sha256.Size]byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatalf("encode a public key: %v", err)
	}
	return sha256.Sum256(der)
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatalf("draw a serial number: %v", err)
	}
	return number.Add(number, big.NewInt(1))
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	decoded, err := hex.DecodeString(text)
	if err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return decoded
}
