package verifytest

import (
	"encoding/base64"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"sluice.dev/sluice/internal/verify"
)

// Key is a key pair that signs as cosign does.
type Key struct{ pair *keypair }

// NewKey makes a key of the kind that cosign makes.
func NewKey(t testing.TB) *Key {
	t.Helper()
	return NewKeyOf(t, P256)
}

// NewKeyOf makes a key of any kind.
func NewKeyOf(t testing.TB, kind Kind) *Key {
	t.Helper()
	return &Key{pair: newKeypair(t, kind)}
}

// PublicPEM is what belongs into a Secret's entry cosign.pub.
func (k *Key) PublicPEM(t testing.TB) []byte {
	t.Helper()
	encoded, err := k.pair.GetPublicKeyPem()
	if err != nil {
		t.Fatalf("encode the public key: %v", err)
	}
	return []byte(encoded)
}

// SimpleSigning signs the digest in the repository, as cosign did before version 3.
func (k *Key) SimpleSigning(t testing.TB, repository string, of digest.Digest) verify.Signature {
	t.Helper()
	return k.SignPayload(t, SimplePayload(repository, of))
}

// SignPayload signs any bytes as a simple-signing payload.
func (k *Key) SignPayload(t testing.TB, payload []byte) verify.Signature {
	t.Helper()
	raw, _, err := k.pair.SignData(t.Context(), payload)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return verify.Signature{
		MediaType:   verify.MediaTypeSimpleSigning,
		Content:     payload,
		Annotations: map[string]string{verify.AnnotationSignature: base64.StdEncoding.EncodeToString(raw)},
	}
}

// Bundle signs the manifest as cosign does since version 3: a statement in a bundle.
func (k *Key) Bundle(t testing.TB, manifest ocispec.Descriptor) verify.Signature {
	t.Helper()
	return k.SignStatement(t, Statement(t, PredicateSign, manifest.Digest))
}

// SignStatement signs any bytes as an in-toto statement in a bundle.
func (k *Key) SignStatement(t testing.TB, statement []byte) verify.Signature {
	t.Helper()
	return k.bundle(t, &sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"})
}

// MessageBundle signs the manifest's bytes as cosign sign-blob does: a message signature in a bundle.
func (k *Key) MessageBundle(t testing.TB, manifest []byte) verify.Signature {
	t.Helper()
	return k.bundle(t, &sign.PlainData{Data: manifest})
}

// EmptyMessage is the forgery of a bundle that claims the digest and whose signature covers no bytes at all.
func (k *Key) EmptyMessage(t testing.TB, claimed digest.Digest) verify.Signature {
	t.Helper()
	raw, _, err := k.pair.SignData(t.Context(), nil)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return bundled(t, &protobundle.Bundle{
		MediaType: verify.MediaTypeBundle,
		VerificationMaterial: &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{
			PublicKey: &protocommon.PublicKeyIdentifier{Hint: string(k.pair.GetHint())},
		}},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: unhex(t, claimed.Encoded())},
			Signature:     raw,
		}},
	})
}

func (k *Key) bundle(t testing.TB, content sign.Content) verify.Signature {
	t.Helper()
	made, err := sign.Bundle(content, k.pair, sign.BundleOptions{Context: t.Context()})
	if err != nil {
		t.Fatalf("sign a bundle: %v", err)
	}
	return bundled(t, made)
}

func bundled(t testing.TB, made *protobundle.Bundle) verify.Signature {
	t.Helper()
	encoded, err := protojson.Marshal(made)
	if err != nil {
		t.Fatalf("encode the bundle: %v", err)
	}
	return verify.Signature{MediaType: made.GetMediaType(), Content: encoded}
}
