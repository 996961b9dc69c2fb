package oci

import (
	"context"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source"
)

// Verify implements source.Verifier: somebody who is trusted must have signed the selected digest.
func (s *session) Verify(ctx context.Context, selection source.Selection) (string, error) {
	if s.verifier == nil {
		return "", nil
	}
	// What is wrong with a credential says nothing about a signature.
	remote, err := s.remote(ctx)
	if err != nil {
		return "", &source.StageError{Stage: source.StageOpen, Err: err}
	}
	isNotation := s.object.Spec.Verify.Provider == sourcev1.NotationOCIVerification
	signer, err := s.opener.Trust.Signer(ctx, s.opener.Client, remote, s.verifier, isNotation, func(ctx context.Context) (ocispec.Descriptor, error) {
		document, err := s.manifest(ctx, selected(selection))
		return document.Descriptor, err
	})
	if err != nil {
		s.forget(ctx)
		return "", explain(sourcev1.VerificationErrorReason, fmt.Errorf("verify the signature of %s: %w", selected(selection), err))
	}
	return signer, nil
}
