package verifytest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
)

// Kind is a kind of key and how it signs.
type Kind string

// The kinds of keys that cosign and its relatives sign with.
const (
	P256       Kind = "ECDSA P-256"
	P384       Kind = "ECDSA P-384"
	P384SHA256 Kind = "ECDSA P-384 with SHA-256"
	P521       Kind = "ECDSA P-521"
	RSA2048    Kind = "RSA 2048"
	Ed25519    Kind = "Ed25519"
)

// keypair signs for the bundle signer of sigstore-go; unlike its own it can sign with another hash than the curve's.
type keypair struct {
	signer    crypto.Signer
	hash      crypto.Hash
	algorithm protocommon.HashAlgorithm
	details   protocommon.PublicKeyDetails
}

func newKeypair(t testing.TB, kind Kind) *keypair {
	t.Helper()
	var err error
	pair := &keypair{}
	ec := func(curve elliptic.Curve) *ecdsa.PrivateKey {
		key, failed := ecdsa.GenerateKey(curve, rand.Reader)
		err = failed
		return key
	}
	switch kind {
	case P256:
		pair.signer, pair.hash = ec(elliptic.P256()), crypto.SHA256
		pair.details = protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
	case P384:
		pair.signer, pair.hash = ec(elliptic.P384()), crypto.SHA384
		pair.details = protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384
	case P384SHA256:
		pair.signer, pair.hash = ec(elliptic.P384()), crypto.SHA256
		pair.details = protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384
	case P521:
		pair.signer, pair.hash = ec(elliptic.P521()), crypto.SHA512
		pair.details = protocommon.PublicKeyDetails_PKIX_ECDSA_P521_SHA_512
	case RSA2048:
		pair.signer, err = rsa.GenerateKey(rand.Reader, 2048)
		pair.hash, pair.details = crypto.SHA256, protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_2048_SHA256
	case Ed25519:
		_, pair.signer, err = generateEd25519()
		pair.details = protocommon.PublicKeyDetails_PKIX_ED25519
	default:
		t.Fatalf("no such kind of key: %s", kind)
	}
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	pair.algorithm = map[crypto.Hash]protocommon.HashAlgorithm{
		crypto.SHA256: protocommon.HashAlgorithm_SHA2_256,
		crypto.SHA384: protocommon.HashAlgorithm_SHA2_384,
		crypto.SHA512: protocommon.HashAlgorithm_SHA2_512,
	}[pair.hash]
	return pair
}

func generateEd25519() (ed25519.PublicKey, crypto.Signer, error) {
	return ed25519.GenerateKey(rand.Reader)
}

// GetHashAlgorithm is asked by the bundle signer.
func (p *keypair) GetHashAlgorithm() protocommon.HashAlgorithm { return p.algorithm }

// GetSigningAlgorithm is asked by the bundle signer.
func (p *keypair) GetSigningAlgorithm() protocommon.PublicKeyDetails { return p.details }

// GetHint is the hint at the key that goes into a bundle.
func (p *keypair) GetHint() []byte {
	der, err := x509.MarshalPKIXPublicKey(p.signer.Public())
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(der)
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}

// GetKeyAlgorithm is asked by the bundle signer.
func (p *keypair) GetKeyAlgorithm() string { return p.details.String() }

// GetPublicKey is the public half.
func (p *keypair) GetPublicKey() crypto.PublicKey { return p.signer.Public() }

// GetPublicKeyPem is the public half in PEM.
func (p *keypair) GetPublicKeyPem() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(p.signer.Public())
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), err
}

// SignData returns the signature and what was signed: a digest, or the data for Ed25519.
func (p *keypair) SignData(_ context.Context, data []byte) (signature, signed []byte, err error) {
	signed = data
	if p.hash != 0 {
		hasher := p.hash.New()
		hasher.Write(data)
		signed = hasher.Sum(nil)
	}
	signature, err = p.signer.Sign(rand.Reader, signed, p.hash)
	return signature, signed, err
}
