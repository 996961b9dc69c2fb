package main

import (
	"context"
	"encoding/json"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"sluice.dev/sluice/tests/upstream/registry"
)

// signer signs as cosign does with a key.
type signer struct{ pair *sign.EphemeralKeypair }

func newSigner() (*signer, error) {
	pair, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return &signer{pair: pair}, nil
}

// publicPEM is what belongs into the Secret that spec.verify names.
func (s *signer) publicPEM() (string, error) { return s.pair.GetPublicKeyPem() }

// attach signs the manifest and pushes the signature beside it: a statement in a bundle, which refers to the manifest.
func (s *signer) attach(ctx context.Context, repository *registry.Repository, manifest ocispec.Descriptor) error {
	statement, err := json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{"sha256": manifest.Digest.Encoded()}}},
		"predicateType": "https://sigstore.dev/cosign/sign/v1",
		"predicate":     map[string]any{},
	})
	if err != nil {
		return fmt.Errorf("write the statement: %w", err)
	}
	bundle, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}, s.pair,
		sign.BundleOptions{Context: ctx})
	if err != nil {
		return fmt.Errorf("sign %s: %w", manifest.Digest, err)
	}
	content, err := protojson.Marshal(bundle)
	if err != nil {
		return fmt.Errorf("encode the bundle: %w", err)
	}
	_, err = repository.Attach(ctx, manifest, registry.Attachment{
		ArtifactType: bundle.GetMediaType(), MediaType: bundle.GetMediaType(), Content: content,
	})
	return err
}
