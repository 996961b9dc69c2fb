package oci

import (
	"context"
	"fmt"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/registry/signatures"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify"
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
	// Trust roots and revocation are asked for on the object's behalf as well.
	ctx = transport.WithProxy(ctx, remote.Credential.Proxy)
	signer, err := s.signer(ctx, selection)
	if err != nil {
		s.forget(ctx)
		return "", explain(sourcev1.VerificationErrorReason, fmt.Errorf("verify the signature of %s: %w", selected(selection), err))
	}
	return signer, nil
}

func (s *session) signer(ctx context.Context, selection source.Selection) (string, error) {
	repository := s.host + "/" + s.name
	if skipper, ok := s.verifier.(interface {
		Skip(ctx context.Context, repository string) (bool, error)
	}); ok {
		if skip, err := skipper.Skip(ctx, repository); skip || err != nil {
			return "", err
		}
	}
	document, err := s.manifest(ctx, selected(selection))
	if err != nil {
		return "", err
	}
	remote, err := s.remote(ctx)
	if err != nil {
		return "", err
	}
	search := &signatures.Search{
		Client: s.opener.Client, Remote: remote, Verifier: s.verifier,
		Artifact: verify.Artifact{Repository: repository, Descriptor: document.Descriptor},
		Most:     s.opener.MaxSignatures,
		Notation: s.object.Spec.Verify.Provider == sourcev1.NotationOCIVerification,
	}
	return search.Run(ctx)
}
