package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/distribution/distribution/v3/registry/auth/token"
)

// signer signs tokens with ES256 (RFC 7515, RFC 7518).
type signer struct {
	key *ecdsa.PrivateKey
	id  string
}

func newSigner() (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create token key: %w", err)
	}
	return &signer{key: key, id: token.GetJWKThumbprint(key.Public())}, nil
}

// jwks is the public key as a key set (RFC 7517).
func (s *signer) jwks() ([]byte, error) {
	point, err := s.key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	x, y := point[1:33], point[33:] // An uncompressed point: 4, x, y.
	return json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": s.id,
		"x": base64.RawURLEncoding.EncodeToString(x), "y": base64.RawURLEncoding.EncodeToString(y),
	}}})
}

func (s *signer) sign(claims token.ClaimSet) (string, error) {
	header, err := json.Marshal(map[string]string{"typ": "JWT", "alg": "ES256", "kid": s.id})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(signed))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
