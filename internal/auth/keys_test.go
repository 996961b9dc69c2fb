package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// keys are made anew for each test: what is checked in would look like a leak.
type keys struct {
	plain, encrypted, legacy, ecdsa    string // private keys for ssh; the encrypted ones open with passphrase
	weak, dsa, p224                    string
	hosts                              string
	certificate, key, otherCertificate string // for TLS
}

const passphrase = "canary-passphrase"

func newKeys(t *testing.T) keys {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	host, err := ssh.NewPublicKey(public)
	must(t, err)
	plain, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	encrypted, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	must(t, err)

	p256, der := ecdsaKey(t, elliptic.P256())
	//nolint:staticcheck // The old format is still in use, so it is read.
	legacy, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte(passphrase), x509.PEMCipherAES256)
	must(t, err)
	_, small := ecdsaKey(t, elliptic.P224())
	other, _ := ecdsaKey(t, elliptic.P256())

	return keys{
		plain:            text(plain),
		encrypted:        text(encrypted),
		legacy:           text(legacy),
		ecdsa:            text(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		p224:             text(&pem.Block{Type: "EC PRIVATE KEY", Bytes: small}),
		weak:             weakRSA(t),
		dsa:              dsaKey(t),
		hosts:            "git.example " + string(ssh.MarshalAuthorizedKey(host)),
		certificate:      certificate(t, p256),
		key:              text(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		otherCertificate: certificate(t, other),
	}
}

func ecdsaKey(t *testing.T, curve elliptic.Curve) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	must(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return key, der
}

// weakRSA puts together what crypto/rsa no longer generates.
func weakRSA(t *testing.T) string {
	t.Helper()
	one := big.NewInt(1)
	e := big.NewInt(65537)
	for {
		p, err := rand.Prime(rand.Reader, 512)
		must(t, err)
		q, err := rand.Prime(rand.Reader, 512)
		must(t, err)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if d == nil || p.Cmp(q) == 0 {
			continue
		}
		key := &rsa.PrivateKey{
			PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(e.Int64())},
			D:         d, Primes: []*big.Int{p, q},
		}
		return text(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	}
}

func dsaKey(t *testing.T) string {
	t.Helper()
	der, err := asn1.Marshal(struct {
		Version            int
		P, Q, G, Pub, Priv *big.Int
	}{0, big.NewInt(23), big.NewInt(11), big.NewInt(4), big.NewInt(8), big.NewInt(7)})
	must(t, err)
	return text(&pem.Block{Type: "DSA PRIVATE KEY", Bytes: der})
}

func certificate(t *testing.T, key crypto.Signer) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return text(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// longPair is a certificate with a key that it takes seconds to sign with.
func longPair(t *testing.T) map[string]string {
	t.Helper()
	key := longKey(t, 8194)
	block, _ := pem.Decode([]byte(key))
	long, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	must(t, err)
	authority, _ := ecdsaKey(t, elliptic.P256())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, long.Public(), authority)
	must(t, err)
	return map[string]string{"tls.crt": text(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "tls.key": key}
}

// demanding rewrites an encrypted key so that opening it would take hours.
func demanding(t *testing.T, key string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(key))
	at := strings.Index(string(block.Bytes), "bcrypt")
	if at < 0 {
		t.Fatal("the key is not encrypted with bcrypt")
	}
	// After the name: the length of the options, the length of the salt, 16 bytes of salt, the rounds.
	roundsAt := at + len("bcrypt") + 4 + 4 + 16
	copy(block.Bytes[roundsAt:], []byte{0x7f, 0xff, 0xff, 0xff})
	return text(block)
}

func text(block *pem.Block) string { return string(pem.EncodeToMemory(block)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
