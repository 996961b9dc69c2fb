package verify

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"regexp"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// Identity is whom a certificate must have been issued to, and by whom that identity was proved. Both are Go regular
// expressions that match anywhere in the value, as in Flux and cosign: to match all of it, write ^ and $.
type Identity struct {
	// Issuer matches the OpenID Connect issuer.
	Issuer string
	// Subject matches the subject alternative name: an email address or a URI.
	Subject string
}

// KeylessOptions say whom to trust.
type KeylessOptions struct {
	CosignOptions

	// Identities are accepted each by itself; at least one is required. Flux accepts everybody where none is given;
	// here that is ErrPolicy, because a certificate of anybody proves nothing.
	Identities []Identity
	// TrustedRoot is a trusted_root.json; with it no network is needed.
	TrustedRoot []byte
	// Roots are asked if TrustedRoot is empty.
	Roots *TUFRoots
}

// CosignKeyless accepts what somebody signed to whom the trusted authority issued a short-lived certificate. The
// signature must be in a trusted transparency log, must have a trusted time (of the log or of a timestamp
// authority) at which the certificate was valid, and where the root knows certificate transparency logs, the
// certificate must be in one. No acceptance depends on the present time.
type CosignKeyless struct {
	identities  []verify.PolicyOption
	options     KeylessOptions
	root        root.TrustedMaterial
	fingerprint string
}

// NewCosignKeyless returns a verifier, or ErrPolicy if the options cannot be used.
func NewCosignKeyless(options KeylessOptions) (*CosignKeyless, error) {
	v := &CosignKeyless{options: options}
	if err := v.readIdentities(); err != nil {
		return nil, err
	}
	identities := make([][]byte, 0, len(options.Identities))
	for _, identity := range options.Identities {
		identities = append(identities, append(encode([]byte(identity.Issuer)), identity.Subject...))
	}
	policy := set([][]byte{flag(options.AnyRepository)}, identities)
	switch {
	case len(options.TrustedRoot) > 0:
		trusted, err := parseTrustedRoot(options.TrustedRoot)
		if err != nil {
			return nil, unusable("trusted_root.json: %v", err)
		}
		v.root = trusted
		policy = append(policy, []byte("root"), options.TrustedRoot)
	case options.Roots != nil:
		policy = append(policy, []byte("tuf"), []byte(options.Roots.name()))
	default:
		return nil, unusable("no trusted root is given")
	}
	v.fingerprint = fingerprint("cosign-keyless", policy...)
	return v, nil
}

func (v *CosignKeyless) readIdentities() error {
	if len(v.options.Identities) == 0 {
		return unusable("no identity is given, so that anybody could sign; add issuer and subject to spec.verify.matchOIDCIdentity")
	}
	for _, identity := range v.options.Identities {
		for field, expression := range map[string]string{"issuer": identity.Issuer, "subject": identity.Subject} {
			if expression == "" {
				return unusable("an identity has no %s", field)
			}
			if _, err := regexp.Compile(expression); err != nil {
				return unusable("an identity's %s: %v", field, err)
			}
		}
		matcher, err := verify.NewShortCertificateIdentity("", identity.Issuer, "", identity.Subject)
		if err != nil {
			return unusable("an identity: %v", err)
		}
		v.identities = append(v.identities, verify.WithCertificateIdentity(matcher))
	}
	return nil
}

// parseTrustedRoot reads a trusted_root.json that can prove something: it has a certificate authority and a log.
func parseTrustedRoot(content []byte) (*root.TrustedRoot, error) {
	trusted, err := root.NewTrustedRootFromJSON(content)
	if err != nil {
		return nil, err
	}
	if len(trusted.FulcioCertificateAuthorities()) == 0 || len(trusted.RekorLogs()) == 0 {
		return nil, errIncompleteRoot
	}
	return trusted, nil
}

// Fingerprint changes with the identities, the trusted root and the options. Roots that are fetched are named by
// where they are fetched from, not by what they hold: they rotate without a change of policy.
func (v *CosignKeyless) Fingerprint() string { return v.fingerprint }

// Verify proves a sigstore bundle, or a simple-signing payload with the annotations of a keyless signature.
func (v *CosignKeyless) Verify(ctx context.Context, artifact Artifact, signature Signature) (Signer, error) {
	bundled := func(parsed *bundle.Bundle, sum []byte) (Signer, error) { return v.verifyBundle(ctx, parsed, sum) }
	return verifyCosign(ctx, artifact, signature, bundled, func() (Signer, error) { return v.verifyPayload(ctx, artifact, signature) })
}

func (v *CosignKeyless) verifyBundle(ctx context.Context, parsed *bundle.Bundle, sum []byte) (Signer, error) {
	content, err := parsed.VerificationContent()
	if err != nil {
		return Signer{}, refuse("its bundle is malformed: %v", err)
	}
	if content.Certificate() == nil {
		return Signer{}, refuse("it was made with a key, not with a certificate")
	}
	if _, isEd25519 := content.Certificate().PublicKey.(ed25519.PublicKey); isEd25519 && parsed.GetMessageSignature() != nil {
		// Ed25519 signs messages, never the digest that is all we have.
		return Signer{}, refuse("an Ed25519 key cannot have signed the digest that its bundle holds")
	}
	return v.prove(ctx, parsed, aboutArtifact(sum, v.identities...))
}

func (v *CosignKeyless) verifyPayload(ctx context.Context, artifact Artifact, signature Signature) (Signer, error) {
	entity, err := legacyEntity(signature)
	if err != nil {
		return Signer{}, err
	}
	payload := verify.WithArtifact(bytes.NewReader(signature.Content))
	signer, err := v.prove(ctx, entity, verify.NewPolicy(payload, v.identities...))
	if err != nil {
		return Signer{}, err
	}
	if err := checkClaims(signature.Content, artifact, v.options.AnyRepository); err != nil {
		return Signer{}, err
	}
	return signer, nil
}

// prove asks the library for everything that a keyless signature must have.
func (v *CosignKeyless) prove(ctx context.Context, entity verify.SignedEntity, policy verify.PolicyBuilder) (Signer, error) {
	trusted, err := v.trusted(ctx)
	if err != nil {
		return Signer{}, err
	}
	demands := []verify.VerifierOption{
		verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate(),
	}
	if len(trusted.CTLogs()) > 0 {
		demands = append(demands, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(trusted, demands...)
	if err != nil {
		return Signer{}, refuse("%v", err)
	}
	result, err := verifier.Verify(entity, policy)
	if err != nil {
		return Signer{}, refuse("%v", err)
	}
	if result.VerifiedIdentity == nil || result.Signature == nil || result.Signature.Certificate == nil {
		return Signer{}, refuse("nobody's identity was proved")
	}
	certificate := result.Signature.Certificate
	return Signer{
		Name:     printableLine("identity " + certificate.SubjectAlternativeName + " issued by " + certificate.Issuer),
		Enforced: true,
	}, nil
}

// Issued refuses a certificate that no authority has issued which was trusted then.
func (v *CosignKeyless) Issued(ctx context.Context, certificate *x509.Certificate) error {
	trusted, err := v.trusted(ctx)
	if err != nil {
		return err
	}
	if _, err := verify.VerifyLeafCertificate(certificate.NotBefore, certificate, trusted); err != nil {
		return refuse("its certificate is by no trusted authority: %v", err)
	}
	return nil
}

func (v *CosignKeyless) trusted(ctx context.Context) (root.TrustedMaterial, error) {
	if v.root != nil {
		return v.root, nil
	}
	return v.options.Roots.Root(ctx)
}
