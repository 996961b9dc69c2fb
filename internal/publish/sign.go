package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"sluice.dev/sluice/internal/registry/signatures"
	"sluice.dev/sluice/internal/verify"
)

// What a signature is made of, as cosign makes it since version 3.
const (
	statementType = "application/vnd.in-toto+json"
	predicateType = "https://sigstore.dev/cosign/sign/v1"
	// maxSignatures is how many signatures are looked at before another one is made.
	maxSignatures = 50
)

// Signer signs digests: a Key, or Keyless.
type Signer interface {
	// identify gives the verifier of what the same signer has signed.
	identify(ctx context.Context) (verify.Verifier, error)
	// bundle says that the digest is signed, in a sigstore bundle. It is asked for after identify.
	bundle(ctx context.Context, of digest.Digest) ([]byte, error)
}

// sign attaches a signature to the manifest, unless there is one by the signer. One that no source could be told to trust is none.
func (p *pusher) sign(ctx context.Context) (bool, error) {
	subject := p.artifact.described
	subject.Annotations = nil
	verifier, err := p.order.Signer.identify(ctx)
	if err != nil {
		return false, fmt.Errorf("sign %s: %w", subject.Digest, err)
	}
	search := &signatures.Search{
		Client: p.client, Remote: p.order.Repository, Verifier: verifier, Most: maxSignatures,
		Artifact: verify.Artifact{Repository: p.order.Repository.Host + "/" + p.order.Repository.Name, Descriptor: subject},
	}
	if signer, err := search.Run(ctx); err == nil && signer != "" {
		return false, nil
	} else if err != nil && !errors.Is(err, signatures.ErrNone) {
		return false, err
	}
	bundle, err := p.order.Signer.bundle(ctx, subject.Digest)
	if err == nil {
		_, err = verifier.Verify(ctx, search.Artifact, verify.Signature{MediaType: verify.MediaTypeBundle, Content: bundle})
	}
	if err != nil {
		return false, fmt.Errorf("sign %s: %w", subject.Digest, err)
	}
	return true, p.attach(ctx, subject, bundle)
}

// attach pushes a bundle that refers to the subject.
func (p *pusher) attach(ctx context.Context, subject ocispec.Descriptor, bundle []byte) error {
	layer := ocispec.Descriptor{MediaType: verify.MediaTypeBundle, Digest: digest.FromBytes(bundle), Size: int64(len(bundle))}
	empty := ocispec.DescriptorEmptyJSON
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: verify.MediaTypeBundle,
		Config: empty, Layers: []ocispec.Descriptor{layer}, Subject: &subject, Annotations: map[string]string{
			"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicateType,
		},
	})
	if err != nil {
		return fmt.Errorf("encode the signature's manifest: %w", err)
	}
	attached := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	for _, one := range []struct {
		ocispec.Descriptor

		content []byte
	}{{empty, empty.Data}, {layer, bundle}, {attached, raw}} {
		if _, err := p.client.Push(ctx, p.order.Repository, one.Descriptor, bytes.NewReader(one.content)); err != nil {
			return fmt.Errorf("push the signature: %w", err)
		}
	}
	return nil
}

// statementOf is what is signed of a digest.
func statementOf(of digest.Digest) ([]byte, error) {
	return json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{of.Algorithm().String(): of.Encoded()}}},
		"predicateType": predicateType,
		"predicate":     map[string]any{},
	})
}

// bundled is a signed statement, with what proves the signature.
func bundled(statement, signature []byte, material *protobundle.VerificationMaterial) ([]byte, error) {
	return protojson.Marshal(&protobundle.Bundle{
		MediaType: verify.MediaTypeBundle, VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: statement, PayloadType: statementType, Signatures: []*protodsse.Signature{{Sig: signature}},
		}},
	})
}

// identify implements Signer.
func (k *Key) identify(context.Context) (verify.Verifier, error) { return k.verifier, nil } //nolint:unparam // It implements Signer.

// bundle implements Signer.
func (k *Key) bundle(_ context.Context, of digest.Digest) ([]byte, error) {
	statement, err := statementOf(of)
	if err != nil {
		return nil, err
	}
	signature, err := k.signer.SignMessage(bytes.NewReader(dsse.PAE(statementType, statement)))
	if err != nil {
		return nil, err
	}
	return bundled(statement, signature, &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: k.hint}},
	})
}
