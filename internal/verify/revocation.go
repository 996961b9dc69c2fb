package verify

import (
	"context"
	"net/http"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/revocation/result"
	"github.com/notaryproject/notation-go/verifier"
)

// newRevocation asks for the revocation of signing and timestamping certificates, by OCSP and else by lists.
func newRevocation(client *http.Client, store trustStore) (verifier.VerifierOptions, error) {
	fetcher, err := crl.NewHTTPFetcher(client)
	if err != nil {
		return verifier.VerifierOptions{}, err
	}
	var options verifier.VerifierOptions
	for _, use := range []struct {
		purpose purpose.Purpose
		into    *revocation.Validator
	}{
		{purpose.CodeSigning, &options.RevocationCodeSigningValidator},
		{purpose.Timestamping, &options.RevocationTimestampingValidator},
	} {
		validator, err := revocation.NewWithOptions(revocation.Options{
			OCSPHTTPClient: client, CRLFetcher: fetcher, CertChainPurpose: use.purpose,
		})
		if err != nil {
			return verifier.VerifierOptions{}, err
		}
		*use.into = trustedOnly{validator: validator, store: store}
	}
	return options, nil
}

// trustedOnly asks no responder that a stranger's certificate names: under a policy that only logs a failing
// authenticity check, the library would.
type trustedOnly struct {
	validator revocation.Validator
	store     trustStore
}

// ValidateContext is asked by the library.
func (t trustedOnly) ValidateContext(ctx context.Context, options revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	if err := t.store.vouches(options.CertChain); err != nil {
		return nil, err
	}
	return t.validator.ValidateContext(ctx, options)
}
