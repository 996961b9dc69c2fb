package oci

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/transport"
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

// errEnough says that an artifact has more signatures than are looked at.
var errEnough = errors.New("more signatures")

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
	search := &search{
		client: s.opener.Client, remote: remote, verifier: s.verifier,
		artifact: verify.Artifact{Repository: repository, Descriptor: document.Descriptor},
		most:     s.opener.MaxSignatures,
	}
	return search.run(ctx, s.object.Spec.Verify.Provider)
}

// search looks for one good signature among those that are attached to an artifact.
type search struct {
	client   *registry.Client
	remote   registry.Repository
	verifier verify.Verifier
	artifact verify.Artifact
	most     int // signatures that are looked at

	seen       int
	complaints []error
	// tolerated is a signature that the policy lets pass without trusting it.
	tolerated bool
}

// run tries the places where a provider's signatures are: the newest way first, and the rarest last, so that few are
// asked in vain. A place that fails does not hide the others, but is told of when nothing is found in them.
func (s *search) run(ctx context.Context, provider string) (string, error) {
	places := []func(context.Context) (*verify.Signer, error){
		func(ctx context.Context) (*verify.Signer, error) { return s.referrers(ctx, verify.MediaTypeBundle) },
		s.tagged,
		func(ctx context.Context) (*verify.Signer, error) { return s.referrers(ctx, simpleType) },
	}
	if provider == sourcev1.NotationOCIVerification {
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
		return "", errors.New("no signature found: sign the artifact and push the signature beside it")
	default:
		return "", fmt.Errorf("none of %d signatures is by a trusted signer: %w", s.seen, complaints(s.complaints))
	}
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
func (s *search) referrers(ctx context.Context, artifactType string) (*verify.Signer, error) {
	found, err := s.client.Referrers(ctx, s.remote, s.artifact.Descriptor.Digest, artifactType)
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
func (s *search) tagged(ctx context.Context) (*verify.Signer, error) {
	d := s.artifact.Descriptor.Digest
	found, err := s.client.Resolve(ctx, s.remote, d.Algorithm().String()+"-"+d.Encoded()+".sig")
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for signatures: %w", err)
	}
	return s.attached(ctx, found.Digest)
}

// attached tries the signatures in one manifest.
func (s *search) attached(ctx context.Context, d digest.Digest) (*verify.Signer, error) {
	document, err := s.client.Manifest(ctx, s.remote, d)
	if err != nil {
		return nil, fmt.Errorf("get signature manifest %s: %w", d, err)
	}
	defer registry.Release(ctx, document.Raw)
	if document.Manifest == nil {
		return nil, fmt.Errorf("signature manifest %s is an index", d)
	}
	for _, layer := range document.Manifest.Layers {
		if s.seen++; s.seen > s.most {
			return nil, fmt.Errorf("%w than %d: remove those that are of no use", errEnough, s.most)
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
func (s *search) layer(ctx context.Context, layer ocispec.Descriptor) (verify.Signer, error) {
	if layer.Size > verify.MaxSignatureBytes {
		return verify.Signer{}, fmt.Errorf("signature %s of %d bytes is larger than %d", layer.Digest, layer.Size, verify.MaxSignatureBytes)
	}
	content, err := s.client.Bytes(ctx, s.remote, layer)
	if err != nil {
		return verify.Signer{}, fmt.Errorf("get signature %s: %w", layer.Digest, err)
	}
	defer registry.Release(ctx, content)
	signer, err := s.verifier.Verify(ctx, s.artifact, verify.Signature{
		MediaType: layer.MediaType, Content: content, Annotations: layer.Annotations,
	})
	if err == nil && signer.Logged != "" {
		logr.FromContextOrDiscard(ctx).Info("a signature failed checks that its policy only logs",
			"signature", layer.Digest.String(), "signer", signer.Name, "failed", signer.Logged)
	}
	return signer, err
}
