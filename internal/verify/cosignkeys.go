package verify

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// CosignOptions tune the verification of cosign's signatures.
type CosignOptions struct {
	// AnyRepository accepts simple signatures that were made for another repository, as a mirror's are. Bundles
	// name no repository.
	AnyRepository bool
}

// CosignKeys accepts what one of some public keys signed. No transparency log is asked for: a key that is trusted
// as it stands needs no witness. What a bundle carries beyond the signature must be well-formed, and proves nothing.
type CosignKeys struct {
	keys        []publicKey
	options     CosignOptions
	fingerprint string
}

// NewCosignKeys takes the keys from the entries of a Secret whose names end in ".pub", each one public key in PEM:
// ECDSA on P-256, P-384 or P-521, RSA of 2048 to 8192 bits, or Ed25519. The error is ErrPolicy if there is none or
// one cannot be used.
func NewCosignKeys(entries map[string][]byte, options CosignOptions) (*CosignKeys, error) {
	v := &CosignKeys{options: options}
	var raw [][]byte
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !strings.HasSuffix(name, ".pub") {
			continue
		}
		key, err := parsePublicKey(name, entries[name])
		if err != nil {
			return nil, unusable("public key %q: %v", name, err)
		}
		v.keys, raw = append(v.keys, key), append(raw, key.der)
	}
	if len(v.keys) == 0 {
		return nil, unusable("the Secret has no entry whose name ends in .pub; add cosign.pub")
	}
	v.fingerprint = fingerprint("cosign-keys", set([][]byte{flag(options.AnyRepository)}, raw)...)
	return v, nil
}

// Fingerprint changes with the set of keys and with the options.
func (v *CosignKeys) Fingerprint() string { return v.fingerprint }

// Verify proves a sigstore bundle or a simple-signing payload with one of the keys.
func (v *CosignKeys) Verify(ctx context.Context, artifact Artifact, signature Signature) (Signer, error) {
	return verifyCosign(ctx, artifact, signature, v.verifyBundle, func() (Signer, error) { return v.verifyPayload(artifact, signature) })
}

func (v *CosignKeys) verifyBundle(parsed *bundle.Bundle, sum []byte) (Signer, error) {
	last := refuse("none of the keys made it")
	for _, key := range v.keys {
		if key.hashesItself && parsed.GetMessageSignature() != nil {
			// Such a key never signs a digest. The library would check the signature over no bytes at all, which
			// says nothing about the artifact.
			last = refuse("an Ed25519 key cannot have signed the digest that its bundle holds")
			continue
		}
		err := key.proves(parsed, sum)
		if err == nil {
			return Signer{Name: key.String(), Enforced: true}, nil
		}
		last = refuse("none of the keys made it: %v", err)
	}
	return Signer{}, last
}

// proves checks the bundle in each way in which the key may have signed.
func (k publicKey) proves(parsed *bundle.Bundle, sum []byte) error {
	var last error
	for _, candidate := range k.verifiers {
		verifier, err := verify.NewVerifier(material(candidate), verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
		if err != nil {
			return err
		}
		if _, last = verifier.Verify(parsed, aboutArtifact(sum, verify.WithKey())); last == nil {
			return nil
		}
	}
	return last
}

func (v *CosignKeys) verifyPayload(artifact Artifact, signature Signature) (Signer, error) {
	raw, err := payloadSignature(signature)
	if err != nil {
		return Signer{}, err
	}
	for _, key := range v.keys {
		if !key.signed(signature.Content, raw) {
			continue
		}
		if err := checkClaims(signature.Content, artifact, v.options.AnyRepository); err != nil {
			return Signer{}, err
		}
		return Signer{Name: key.String(), Enforced: true}, nil
	}
	return Signer{}, refuse("none of the keys made it")
}

func (k publicKey) signed(message, raw []byte) bool {
	for _, verifier := range k.verifiers {
		if verifier.VerifySignature(bytes.NewReader(raw), bytes.NewReader(message)) == nil {
			return true
		}
	}
	return false
}
