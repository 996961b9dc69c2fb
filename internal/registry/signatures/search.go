// Package signatures finds the signatures that are attached to an artifact in a registry, and asks a verifier for one that is good.
// It does not know whom the verifier trusts, or what the artifact is for.
package signatures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/verify"
)

// The artifact types of what signers attach by the referrers API. That of cosign's bundles is their media type; the other
// one is that of simple signatures, which cosign attaches in its mode oci-1-1 instead of tagging them.
const (
	notationType = "application/vnd.cncf.notary.signature"
	simpleType   = "application/vnd.dev.cosign.artifact.sig.v1+json"
)

// maxComplaints is how many of the signatures that prove nothing an error tells about.
const maxComplaints = 3

// ErrNone says that all signatures were looked at, and none is by somebody who is trusted.
var ErrNone = errors.New("not signed by anybody who is trusted")

// none is ErrNone in the words of what was found.
type none struct{ error }

func (none) Is(target error) bool { return target == ErrNone }

func (n none) Unwrap() error { return n.error }

// errEnough says that an artifact has more signatures than are looked at.
var errEnough = errors.New("more signatures")

// Search looks for one good signature among those that are attached to an artifact. It is for one use.
type Search struct {
	Client   *registry.Client
	Remote   registry.Repository
	Verifier verify.Verifier
	Artifact verify.Artifact
	// Most is how many signatures are looked at.
	Most int
	// Notation says that they are the Notary Project's, and not cosign's.
	Notation bool

	seen       int
	complaints []error
	// tolerated is a signature that the policy lets pass without trusting it.
	tolerated bool
}

// Run tries the places where a provider's signatures are: the newest way first, and the rarest last, so that few are
// asked in vain. A place that fails does not hide the others, but is told of when nothing is found in them. The
// signer is empty where the policy lets a signature pass without trusting it. The error is ErrNone where there is no good one.
func (s *Search) Run(ctx context.Context) (string, error) {
	places := []func(context.Context) (*verify.Signer, error){
		func(ctx context.Context) (*verify.Signer, error) { return s.referrers(ctx, verify.MediaTypeBundle) },
		s.tagged,
		func(ctx context.Context) (*verify.Signer, error) { return s.referrers(ctx, simpleType) },
	}
	if s.Notation {
		places = []func(context.Context) (*verify.Signer, error){
			func(ctx context.Context) (*verify.Signer, error) { return s.referrers(ctx, notationType) },
		}
	}
	var failed error
	for _, place := range places {
		signer, err := place(ctx)
		if signer != nil {
			return signer.Name, nil
		}
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case s.tolerated:
		return "", ctx.Err()
	case failed != nil && len(s.complaints) > 0:
		return "", fmt.Errorf("%w; none of %d signatures looked at is by a trusted signer: %w", failed, len(s.complaints), complaints(s.complaints))
	case failed != nil:
		return "", failed
	case s.seen == 0:
		return "", none{errors.New("no signature found: sign the artifact and push the signature beside it")}
	default:
		err := fmt.Errorf("none of %d signatures is by a trusted signer: %w", s.seen, complaints(s.complaints))
		if slices.ContainsFunc(s.complaints, isNoVerdict) {
			return "", err
		}
		return "", none{err}
	}
}

// isNoVerdict tells whether it is not known what a signature is worth: it could not be read, or not be checked.
func isNoVerdict(err error) bool {
	return !errors.Is(err, verify.ErrSignature) && !errors.Is(err, verify.ErrUnsigned)
}

// complaints tell why signatures prove nothing, of the first few only.
type complaints []error

func (c complaints) Error() string {
	told := make([]string, 0, maxComplaints)
	for _, complaint := range c[:min(len(c), maxComplaints)] {
		told = append(told, complaint.Error())
	}
	return strings.Join(told, "; ")
}

func (c complaints) Unwrap() []error { return c }

// referrers tries the signatures that the registry says refer to the artifact.
func (s *Search) referrers(ctx context.Context, artifactType string) (*verify.Signer, error) {
	found, err := s.Client.Referrers(ctx, s.Remote, s.Artifact.Descriptor.Digest, artifactType)
	if err != nil {
		return nil, fmt.Errorf("look for signatures: %w", err)
	}
	for _, attached := range found {
		signer, err := s.attached(ctx, attached.Digest)
		if signer != nil || errors.Is(err, errEnough) || ctx.Err() != nil {
			return signer, err
		}
		if err != nil {
			s.seen++
			s.complaints = append(s.complaints, err)
		}
	}
	return nil, nil
}

// tagged tries the signatures under cosign's tag for the artifact's digest.
func (s *Search) tagged(ctx context.Context) (*verify.Signer, error) {
	d := s.Artifact.Descriptor.Digest
	found, err := s.Client.Resolve(ctx, s.Remote, d.Algorithm().String()+"-"+d.Encoded()+".sig")
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for signatures: %w", err)
	}
	return s.attached(ctx, found.Digest)
}

// attached tries the signatures in one manifest.
func (s *Search) attached(ctx context.Context, d digest.Digest) (*verify.Signer, error) {
	document, err := s.Client.Manifest(ctx, s.Remote, d)
	if err != nil {
		return nil, fmt.Errorf("get signature manifest %s: %w", d, err)
	}
	defer registry.Release(ctx, document.Raw)
	if document.Manifest == nil {
		return nil, fmt.Errorf("signature manifest %s is an index", d)
	}
	for _, layer := range document.Manifest.Layers {
		if s.seen++; s.seen > s.Most {
			return nil, fmt.Errorf("%w than %d: remove those that are of no use", errEnough, s.Most)
		}
		signer, err := s.layer(ctx, layer)
		switch {
		case err == nil && signer.Enforced:
			return &signer, nil
		case err == nil:
			// There may be one beside it that is trusted.
			s.tolerated = true
		case ctx.Err() != nil:
			return nil, err
		default:
			s.complaints = append(s.complaints, err)
		}
	}
	return nil, nil
}

// layer checks one signature.
func (s *Search) layer(ctx context.Context, layer ocispec.Descriptor) (verify.Signer, error) {
	if layer.Size > verify.MaxSignatureBytes {
		return verify.Signer{}, fmt.Errorf("signature %s of %d bytes is larger than %d", layer.Digest, layer.Size, verify.MaxSignatureBytes)
	}
	content, err := s.Client.Bytes(ctx, s.Remote, layer)
	if err != nil {
		return verify.Signer{}, fmt.Errorf("get signature %s: %w", layer.Digest, err)
	}
	defer registry.Release(ctx, content)
	signer, err := s.Verifier.Verify(ctx, s.Artifact, verify.Signature{
		MediaType: layer.MediaType, Content: content, Annotations: layer.Annotations,
	})
	if err == nil && signer.Logged != "" {
		logr.FromContextOrDiscard(ctx).Info("a signature failed checks that its policy only logs",
			"signature", layer.Digest.String(), "signer", signer.Name, "failed", signer.Logged)
	}
	return signer, err
}
