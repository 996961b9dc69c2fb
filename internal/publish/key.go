package publish

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/signature"

	"sluice.dev/sluice/internal/verify"
)

// Key is a private key that cosign made.
type Key struct {
	signer   signature.Signer
	verifier verify.Verifier
	hint     string
}

// ReadKey decrypts a key as cosign generate-key-pair writes it. The error is ErrKey, and holds nothing of key or password.
func ReadKey(content, password []byte) (*Key, error) {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "ENCRYPTED SIGSTORE PRIVATE KEY" && block.Type != "ENCRYPTED COSIGN PRIVATE KEY" {
		return nil, fmt.Errorf("%w: it is not an encrypted private key of cosign's", ErrKey)
	}
	der, err := encrypted.Decrypt(block.Bytes, password)
	if err != nil {
		return nil, fmt.Errorf("%w: the password does not open it", ErrKey)
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: it holds no private key", ErrKey)
	}
	pair, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: it cannot sign", ErrKey)
	}
	return newKey(pair)
}

func newKey(private crypto.Signer) (*Key, error) {
	made := &Key{}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err == nil {
		made.signer, err = signature.LoadSigner(private, hashOf(private))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	if made.verifier, err = verify.NewCosignKeys(map[string][]byte{"cosign.pub": text}, verify.CosignOptions{}); err != nil {
		return nil, fmt.Errorf("%w: no source could be told to trust it: %w", ErrKey, err)
	}
	sum := sha256.Sum256(public)
	made.hint = base64.StdEncoding.EncodeToString(sum[:])
	return made, nil
}

// hashOf is what a key of this kind signs with.
func hashOf(private crypto.Signer) crypto.Hash {
	if key, ok := private.(*ecdsa.PrivateKey); ok {
		switch key.Curve {
		case elliptic.P384():
			return crypto.SHA384
		case elliptic.P521():
			return crypto.SHA512
		}
	}
	return crypto.SHA256
}
