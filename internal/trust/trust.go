// Package trust finds out who vouches for what lies in a registry, for the kinds whose specs ask for that.
// It does not know how a signature is checked, or where signatures lie.
package trust

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/registry/signatures"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify"
)

// The entries of Secrets that verification reads, beside keys and certificates.
const (
	trustedRootKey = "trusted_root.json"
	trustPolicyKey = "trustpolicy.json"
)

// stage is the step of the pipeline that errors belong to.
const stage failure.Stage = "verify"

// defaultSignatures is how many signatures of one artifact are looked at.
const defaultSignatures = 50

// Secrets reads them.
type Secrets interface {
	// Data gives the values of a Secret. Field is the field of the spec that names it, for errors.
	Data(ctx context.Context, namespace, secretName, field string) (map[string][]byte, error)
}

// Trust is what verification needs beside the spec.
type Trust struct {
	// Roots are the public authorities and logs behind keyless signatures, for objects that bring none of their own.
	Roots *verify.TUFRoots
	// Revocation asks whether certificates are revoked. The context of its requests has the object's proxy, see
	// transport.WithProxy; so has that of the Roots'.
	Revocation *http.Client
	// AnyRepository accepts simple signatures that were made for another repository.
	AnyRepository bool
	// MaxSignatures is how many signatures of one artifact are looked at. Default 50.
	MaxSignatures int
}

// Verifier makes what the spec of an object asks for; nil when it asks for nothing. Errors have their reason and stage.
func (t Trust) Verifier(ctx context.Context, secrets Secrets, namespace string, spec *sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	if spec == nil {
		return nil, nil //nolint:nilnil // No verifier is the answer to a spec that asks for none.
	}
	made, err := t.make(ctx, secrets, namespace, *spec)
	if err != nil {
		if _, known := errors.AsType[*failure.Error](err); !known {
			err = failure.Retry(sourcev1.VerificationErrorReason, fmt.Errorf("spec.verify: %w", err))
		}
		return nil, &failure.StageError{Stage: stage, Err: err}
	}
	return made, nil
}

// Signer looks for a signature of an artifact by somebody whom the verifier trusts, and tells who that is. Describe gives the
// artifact's descriptor. The signer is empty where the policy skips the repository.
func (t Trust) Signer(
	ctx context.Context, client *registry.Client, remote registry.Repository, verifier verify.Verifier, isNotation bool,
	describe func(ctx context.Context) (ocispec.Descriptor, error),
) (string, error) {
	// Trust roots and revocation are asked for on the object's behalf as well.
	ctx = transport.WithProxy(ctx, remote.Credential.Proxy)
	repository := remote.Host + "/" + remote.Name
	if skipper, ok := verifier.(interface {
		Skip(ctx context.Context, repository string) (bool, error)
	}); ok {
		if skip, err := skipper.Skip(ctx, repository); skip || err != nil {
			return "", err
		}
	}
	described, err := describe(ctx)
	if err != nil {
		return "", err
	}
	search := &signatures.Search{
		Client: client, Remote: remote, Verifier: verifier, Artifact: verify.Artifact{Repository: repository, Descriptor: described},
		Most: t.MaxSignatures, Notation: isNotation,
	}
	if search.Most == 0 {
		search.Most = defaultSignatures
	}
	return search.Run(ctx)
}

func (t Trust) make(ctx context.Context, secrets Secrets, namespace string, spec sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	switch {
	case spec.Provider == sourcev1.NotationOCIVerification:
		return t.notation(ctx, secrets, namespace, spec)
	case spec.SecretRef != nil:
		keys, err := secrets.Data(ctx, namespace, spec.SecretRef.Name, "spec.verify.secretRef")
		if err != nil {
			return nil, err
		}
		return verify.NewCosignKeys(keys, t.cosign())
	default:
		return t.keyless(ctx, secrets, namespace, spec)
	}
}

func (t Trust) cosign() verify.CosignOptions {
	return verify.CosignOptions{AnyRepository: t.AnyRepository}
}

func (t Trust) notation(ctx context.Context, secrets Secrets, namespace string, spec sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	if spec.SecretRef == nil {
		return nil, fmt.Errorf("secretRef is missing: notation needs a Secret with %q and certificates", trustPolicyKey)
	}
	entries, err := secrets.Data(ctx, namespace, spec.SecretRef.Name, "spec.verify.secretRef")
	if err != nil {
		return nil, err
	}
	if len(entries[trustPolicyKey]) == 0 {
		return nil, fmt.Errorf("secret '%s/%s' has no %q: add the trust policy", namespace, spec.SecretRef.Name, trustPolicyKey)
	}
	return verify.NewNotation(entries[trustPolicyKey], entries, t.Revocation)
}

func (t Trust) keyless(ctx context.Context, secrets Secrets, namespace string, spec sourcev1.OCIRepositoryVerification) (verify.Verifier, error) {
	options := verify.KeylessOptions{CosignOptions: t.cosign(), Roots: t.Roots}
	for _, match := range spec.MatchOIDCIdentity {
		options.Identities = append(options.Identities, verify.Identity{Issuer: match.Issuer, Subject: match.Subject})
	}
	if spec.TrustedRootSecretRef == nil {
		return verify.NewCosignKeyless(options)
	}
	entries, err := secrets.Data(ctx, namespace, spec.TrustedRootSecretRef.Name, "spec.verify.trustedRootSecretRef")
	if err != nil {
		return nil, err
	}
	if options.TrustedRoot = entries[trustedRootKey]; len(options.TrustedRoot) == 0 {
		return nil, fmt.Errorf("secret '%s/%s' has no %q: add the trusted root", namespace, spec.TrustedRootSecretRef.Name, trustedRootKey)
	}
	return verify.NewCosignKeyless(options)
}
