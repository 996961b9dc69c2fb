package verify

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"
)

const (
	minRSABits = 2048
	// maxRSABits keeps one check cheap.
	maxRSABits = 8192
)

// publicKey is one key of a Secret.
type publicKey struct {
	name string
	// der is the key as SubjectPublicKeyInfo.
	der []byte
	// verifiers are the ways in which the key may have signed. cosign signs with SHA-256 whatever the curve, other
	// tools with the curve's own hash.
	verifiers []signature.Verifier
	// hashesItself says that the key signs messages only, never a digest.
	hashesItself bool
}

// parsePublicKey reads one PEM block with a public key.
func parsePublicKey(name string, content []byte) (publicKey, error) {
	block, rest := pem.Decode(content)
	if block == nil {
		return publicKey{}, errors.New("it is not PEM")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return publicKey{}, errors.New("data follows the key; give each key an entry of its own")
	}
	parsed, err := parseKeyBlock(block)
	if err != nil {
		return publicKey{}, err
	}
	hashes, err := hashesOf(parsed)
	if err != nil {
		return publicKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(parsed)
	if err != nil {
		return publicKey{}, err
	}
	_, hashesItself := parsed.(ed25519.PublicKey)
	key := publicKey{name: name, der: der, hashesItself: hashesItself}
	for _, hash := range hashes {
		verifier, err := signature.LoadVerifier(parsed, hash)
		if err != nil {
			return publicKey{}, err
		}
		key.verifiers = append(key.verifiers, verifier)
	}
	return key, nil
}

func parseKeyBlock(block *pem.Block) (crypto.PublicKey, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	}
	return nil, fmt.Errorf("it holds a %q, not a public key", block.Type)
}

// hashesOf are the hashes that a key of this kind signs with; other kinds are refused.
func hashesOf(key crypto.PublicKey) ([]crypto.Hash, error) {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return []crypto.Hash{crypto.SHA256}, nil
		case elliptic.P384():
			return []crypto.Hash{crypto.SHA384, crypto.SHA256}, nil
		case elliptic.P521():
			return []crypto.Hash{crypto.SHA512, crypto.SHA256}, nil
		}
		return nil, errors.New("its curve is not P-256, P-384 or P-521")
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("it has %d bits; RSA keys need %d to %d", bits, minRSABits, maxRSABits)
		}
		return []crypto.Hash{crypto.SHA256}, nil
	case ed25519.PublicKey:
		// The hash is not used: Ed25519 hashes by itself.
		return []crypto.Hash{crypto.SHA512}, nil
	}
	return nil, errors.New("it is not an ECDSA, RSA or Ed25519 key")
}

// String names the key for people.
func (k publicKey) String() string {
	sum := sha256.Sum256(k.der)
	return printableLine("key " + k.name + " (sha256:" + hex.EncodeToString(sum[:]) + ")")
}

// material is the key as the only thing trusted, whatever hint a bundle gives.
func material(verifier signature.Verifier) root.TrustedMaterial {
	key := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	return root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
}
