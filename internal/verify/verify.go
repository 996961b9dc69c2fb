// Package verify says who signed an artifact: bytes and keys in, signer out. It knows cosign (public keys and
// keyless, bundles and simple signing) and the Notary Project's signatures.
// It does not know registries, Secrets or Kubernetes, and opens no connection of its own: what must be asked over
// the network (TUF roots, revocation) goes through the HTTP client that the caller gives.
//
// Nothing counts as verified unless a Verify returned a Signer and no error: what is missing, unknown, malformed or
// makes a library panic is not verified.
package verify

import (
	"context"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/printable"
)

const (
	// MaxSignatureBytes is how large a signature may be: a bundle, a simple-signing payload or an envelope.
	MaxSignatureBytes = 1 << 20
	// maxAnnotationBytes is how large the annotations of a signature may be together.
	maxAnnotationBytes = 1 << 20
)

var (
	// ErrPolicy says that the policy or its keys cannot be used; only an edit helps, and the text says which.
	ErrPolicy = errors.New("the verification policy cannot be used")
	// ErrUnsigned says that the bytes are no signature of the kind that the policy asks for, as an attestation is
	// none. Callers also return it when an artifact has no signature at all.
	ErrUnsigned = errors.New("not signed")
	// ErrSignature says that this signature does not prove the artifact, and the text says why.
	ErrSignature = errors.New("the signature does not verify")
	// ErrRoots says that the trust roots could not be fetched; trying again later helps.
	ErrRoots = errors.New("the trust roots are not available")
)

// Artifact is what must have been signed.
type Artifact struct {
	// Repository is host and path as in the object's URL, without scheme, tag and digest.
	Repository string
	// Descriptor is the artifact's manifest as it was resolved: media type, digest and size.
	Descriptor ocispec.Descriptor
}

// Signature is one signature as it was found beside the artifact.
type Signature struct {
	// MediaType says what Content is: one of the MediaType constants.
	MediaType string
	// Content is a sigstore bundle, a simple-signing payload or a notation envelope.
	Content []byte
	// Annotations are those of the layer that holds a simple-signing payload; the others have none.
	Annotations map[string]string
}

// Signer is who signed.
type Signer struct {
	// Name is one printable line: a key with its digest, an identity with its issuer, or a certificate's subject.
	Name string
	// Enforced says that the signer is one that the policy trusts. It is false only under a notation policy that
	// logs a failing authenticity check instead of enforcing it: such an artifact may be used, yet is not verified.
	Enforced bool
	// Logged holds the words of the checks that failed and that a notation policy only logs; empty if all passed.
	Logged string
}

// Verifier proves signatures under one policy. It is safe for concurrent use.
type Verifier interface {
	// Fingerprint is equal for two verifiers only if they accept the same signatures: "sha256:" and 64 hex digits.
	Fingerprint() string
	// Verify returns who signed the artifact, or an error that is ErrPolicy, ErrUnsigned, ErrSignature, ErrRoots,
	// or the context's.
	Verify(ctx context.Context, artifact Artifact, signature Signature) (Signer, error)
}

// guarded runs one verification within the limits, and turns a panic of a library into "not verified".
func guarded(ctx context.Context, signature Signature, verify func() (Signer, error)) (signer Signer, err error) {
	if err := ctx.Err(); err != nil {
		return Signer{}, err
	}
	if err := within(signature); err != nil {
		return Signer{}, err
	}
	defer func() {
		if cause := recover(); cause != nil {
			signer, err = Signer{}, refuse("checking it broke off: %v", cause)
		}
	}()
	signer, err = verify()
	switch {
	case err != nil && ctx.Err() != nil:
		// What a library makes of a deadline is no verdict.
		return Signer{}, ctx.Err()
	case err != nil:
		return Signer{}, err
	}
	return signer, nil
}

func within(signature Signature) error {
	if len(signature.Content) == 0 {
		return refuse("it is empty")
	}
	if len(signature.Content) > MaxSignatureBytes {
		return refuse("it has %d bytes, more than %d", len(signature.Content), MaxSignatureBytes)
	}
	size := 0
	for name, value := range signature.Annotations {
		size += len(name) + len(value)
	}
	if size > maxAnnotationBytes {
		return refuse("its annotations have %d bytes, more than %d", size, maxAnnotationBytes)
	}
	return nil
}

// maxPrintable is how many bytes of words from outside an error or a signer's name repeats.
const maxPrintable = 320

// printableLine makes words from outside one line of bounded length.
func printableLine(text string) string { return printable.Line(text, maxPrintable) }

// refuse is ErrSignature with its reason in printable, bounded words. What a library said is part of the words
// only: nothing of it can be asked for.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSignature, printableLine(fmt.Sprintf(format, args...)))
}

// unusable is ErrPolicy with its reason and remedy.
func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPolicy, printableLine(fmt.Sprintf(format, args...)))
}

// unsigned is ErrUnsigned with its reason.
func unsigned(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsigned, printableLine(fmt.Sprintf(format, args...)))
}
