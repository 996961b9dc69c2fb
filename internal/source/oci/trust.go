package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/verify"
)

// The entries of Secrets that verification reads, beside keys and certificates.
const (
	trustedRootKey = "trusted_root.json"
	trustPolicyKey = "trustpolicy.json"
)

// Trust is what verification needs beside the spec.
type Trust struct {
	// Roots are the public authorities and logs behind keyless signatures, for objects that bring none of their own.
	Roots *verify.TUFRoots
	// Revocation asks whether certificates are revoked. The context of its requests has the object's proxy, see
	// transport.WithProxy; so has that of the Roots'.
	Revocation *http.Client
	// AnyRepository accepts simple signatures that were made for another repository.
	AnyRepository bool
}

// verifier makes what the spec asks for; nil when it asks for nothing.
func (o *Opener) verifier(ctx context.Context, obj *sourcev1.OCIRepository) (verify.Verifier, error) {
	if obj.Spec.Verify == nil {
		return nil, nil //nolint:nilnil // No verifier is the answer to a spec that asks for none.
	}
	made, err := o.makeVerifier(ctx, obj.Namespace, *obj.Spec.Verify)
	if err != nil {
		if _, known := errors.AsType[*failure.Error](err); !known {
			err = failure.Retry(sourcev1.VerificationErrorReason, fmt.Errorf("spec.verify: %w", err))
		}
		return nil, &source.StageError{Stage: source.StageVerify, Err: err}
	}
	return made, nil
}

func (o *Opener) makeVerifier(ctx context.Context, namespace string, spec sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	switch {
	case spec.Provider == sourcev1.NotationOCIVerification:
		return o.notation(ctx, namespace, spec)
	case spec.SecretRef != nil:
		keys, err := o.Credentials.Data(ctx, namespace, spec.SecretRef.Name, "spec.verify.secretRef")
		if err != nil {
			return nil, err
		}
		return verify.NewCosignKeys(keys, o.cosign())
	default:
		return o.keyless(ctx, namespace, spec)
	}
}

func (o *Opener) cosign() verify.CosignOptions {
	return verify.CosignOptions{AnyRepository: o.Trust.AnyRepository}
}

func (o *Opener) notation(ctx context.Context, namespace string, spec sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	if spec.SecretRef == nil {
		return nil, fmt.Errorf("secretRef is missing: notation needs a Secret with %q and certificates", trustPolicyKey)
	}
	entries, err := o.Credentials.Data(ctx, namespace, spec.SecretRef.Name, "spec.verify.secretRef")
	if err != nil {
		return nil, err
	}
	if len(entries[trustPolicyKey]) == 0 {
		return nil, fmt.Errorf("secret '%s/%s' has no %q: add the trust policy", namespace, spec.SecretRef.Name, trustPolicyKey)
	}
	return verify.NewNotation(entries[trustPolicyKey], entries, o.Trust.Revocation)
}

func (o *Opener) keyless(ctx context.Context, namespace string, spec sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	options := verify.KeylessOptions{CosignOptions: o.cosign(), Roots: o.Trust.Roots}
	for _, match := range spec.MatchOIDCIdentity {
		options.Identities = append(options.Identities, verify.Identity{Issuer: match.Issuer, Subject: match.Subject})
	}
	if spec.TrustedRootSecretRef == nil {
		return verify.NewCosignKeyless(options)
	}
	entries, err := o.Credentials.Data(ctx, namespace, spec.TrustedRootSecretRef.Name, "spec.verify.trustedRootSecretRef")
	if err != nil {
		return nil, err
	}
	if options.TrustedRoot = entries[trustedRootKey]; len(options.TrustedRoot) == 0 {
		return nil, fmt.Errorf("secret '%s/%s' has no %q: add the trusted root", namespace, spec.TrustedRootSecretRef.Name, trustedRootKey)
	}
	return verify.NewCosignKeyless(options)
}
