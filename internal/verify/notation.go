package verify

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
)

const (
	// MediaTypeNotationJWS is the Notary Project's envelope in JSON.
	// Format: https://github.com/notaryproject/specifications/blob/main/specs/signature-envelope-jws.md
	MediaTypeNotationJWS = jws.MediaTypeEnvelope
	// MediaTypeNotationCOSE is the Notary Project's envelope in CBOR.
	// Format: https://github.com/notaryproject/specifications/blob/main/specs/signature-envelope-cose.md
	MediaTypeNotationCOSE = cose.MediaTypeEnvelope

	noPlugin = "it has the critical attribute %q, which needs a plugin; there are none"
)

// Notation accepts signatures of the Notary Project under a trust policy. Whether a certificate or a signature has
// expired is judged by the library with the system's clock; where a policy asks for timestamps, by those.
type Notation struct {
	policy      *trustpolicy.Document
	verifier    notation.Verifier
	fingerprint string
}

// NewNotation takes a trustpolicy.json, and the certificates from the entries of a Secret whose names end in ".crt"
// or ".pem". They are in every trust store that the policy names, as in Flux. The client asks OCSP responders and
// fetches revocation lists, at addresses that trusted certificates name; it brings proxy, deadlines and dial policy.
// The error is ErrPolicy if the policy is not valid, or there is no certificate, or one cannot be used.
func NewNotation(policy []byte, entries map[string][]byte, client *http.Client) (*Notation, error) {
	if client == nil {
		return nil, unusable("no HTTP client is given for revocation")
	}
	document, err := parsePolicy(policy)
	if err != nil {
		return nil, unusable("trustpolicy.json: %v", err)
	}
	store, err := parseCertificates(entries)
	if err != nil {
		return nil, err
	}
	revocation, err := newRevocation(client, store)
	if err != nil {
		return nil, unusable("%v", err)
	}
	checker, err := verifier.NewWithOptions(document, store, nil, revocation)
	if err != nil {
		return nil, unusable("trustpolicy.json: %v", err)
	}
	raw := make([][]byte, 0, len(store))
	for _, certificate := range store {
		raw = append(raw, certificate.Raw)
	}
	return &Notation{policy: document, verifier: checker, fingerprint: fingerprint("notation", set([][]byte{policy}, raw)...)}, nil
}

// Fingerprint changes with the policy and with the set of certificates.
func (v *Notation) Fingerprint() string { return v.fingerprint }

// Skip says whether the policy asks for no signature on this repository; then there is nothing to verify. The error
// is ErrPolicy if no statement of the policy is about the repository.
func (v *Notation) Skip(ctx context.Context, repository string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	applicable, err := v.policy.GetApplicableTrustPolicy(v.scoped(repository) + "@")
	if err != nil {
		return false, unusable("trustpolicy.json has no statement for %q; add it to a statement's registryScopes", repository)
	}
	return applicable.SignatureVerification.VerificationLevel == trustpolicy.LevelSkip.Name, nil
}

// scoped writes the repository as one of the policy's scopes does.
func (v *Notation) scoped(repository string) string {
	for _, name := range repositoryNames(repository) {
		for _, stated := range v.policy.TrustPolicies {
			if slices.Contains(stated.RegistryScopes, name) {
				return name
			}
		}
	}
	return repository
}

// Verify proves an envelope under the statement that is about the artifact's repository. Where the statement skips
// verification, that is ErrPolicy: ask Skip first.
func (v *Notation) Verify(ctx context.Context, artifact Artifact, signature Signature) (Signer, error) {
	return guarded(ctx, signature, func() (Signer, error) {
		switch signature.MediaType {
		case MediaTypeNotationJWS, MediaTypeNotationCOSE:
		default:
			return Signer{}, unsigned("%q is not the media type of a notation signature", signature.MediaType)
		}
		switch skip, err := v.Skip(ctx, artifact.Repository); {
		case err != nil:
			return Signer{}, err
		case skip:
			return Signer{}, unusable("trustpolicy.json skips the verification of %q", artifact.Repository)
		}
		outcome, err := v.verifier.Verify(ctx, artifact.Descriptor, signature.Content, notation.VerifierVerifyOptions{
			ArtifactReference:  v.scoped(artifact.Repository) + "@" + artifact.Descriptor.Digest.String(),
			SignatureMediaType: signature.MediaType,
		})
		if err != nil {
			return Signer{}, refuse("%v", err)
		}
		return signerOf(outcome)
	})
}

// signerOf reads what the library found, and believes only what it says outright.
func signerOf(outcome *notation.VerificationOutcome) (Signer, error) {
	if outcome == nil || outcome.Error != nil || outcome.EnvelopeContent == nil ||
		len(outcome.EnvelopeContent.SignerInfo.CertificateChain) == 0 {
		return Signer{}, refuse("nobody's certificate was proved")
	}
	info := outcome.EnvelopeContent.SignerInfo
	for _, attribute := range info.SignedAttributes.ExtendedAttributes {
		// The library leaves it to plugins to understand them.
		if attribute.Critical {
			return Signer{}, refuse(noPlugin, attribute.Key)
		}
	}
	signer := Signer{Name: printableLine("certificate " + info.CertificateChain[0].Subject.String())}
	var logged []string
	passed := map[trustpolicy.ValidationType]bool{}
	for _, result := range outcome.VerificationResults {
		if result.Error == nil {
			passed[result.Type] = true
			continue
		}
		if result.Action == trustpolicy.ActionEnforce {
			return Signer{}, refuse("%v", result.Error)
		}
		logged = append(logged, string(result.Type)+": "+result.Error.Error())
	}
	if !passed[trustpolicy.TypeIntegrity] {
		return Signer{}, refuse("its integrity was not proved")
	}
	signer.Enforced = passed[trustpolicy.TypeAuthenticity]
	signer.Logged = printableLine(strings.Join(logged, "; "))
	return signer, nil
}

// trustStore holds the certificates of a Secret, under every name.
type trustStore []*x509.Certificate

// GetCertificates is asked by the library.
func (s trustStore) GetCertificates(context.Context, truststore.Type, string) ([]*x509.Certificate, error) {
	return s, nil
}

// vouches says whether one of the certificates is in the chain, so that the chain's words may be acted upon.
func (s trustStore) vouches(chain []*x509.Certificate) error {
	for _, certificate := range chain {
		if slices.ContainsFunc(s, certificate.Equal) {
			return nil
		}
	}
	return errors.New("the certificate is of no trusted authority")
}
