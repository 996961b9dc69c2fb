// Package oci is the OCI kind of source: an OCIRepository's spec in, a layer of a manifest out.
// It does not know how a registry is spoken to, how a signature is checked, or what becomes of the content.
package oci

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify"
)

// Credentials reads what a spec refers to in Secrets.
type Credentials interface {
	// Registry gives the credential for the registry of a spec.
	Registry(ctx context.Context, request auth.RegistryRequest) (credential.Registry, error)
	// Data gives the values of a Secret. Field is the field of the spec that names it, for errors.
	Data(ctx context.Context, namespace, secretName, field string) (map[string][]byte, error)
}

// Options are what an Opener works with. All are required but Limits and TempDir.
type Options struct {
	Client      *registry.Client
	Credentials Credentials
	// Trust makes verifiers out of what a spec trusts.
	Trust trust.Trust
	// Limits bound the layers that are unpacked.
	Limits archive.Limits
	// TempDir holds layers while they are archived; empty means the system's.
	TempDir string
}

// Opener opens sessions for OCIRepository objects.
type Opener struct{ Options }

// NewOpener returns an Opener.
func NewOpener(options Options) *Opener { return &Opener{options} }

// Open checks the spec and reads what is trusted. Credentials are read when the registry has to be asked.
func (o *Opener) Open(ctx context.Context, obj *sourcev1.OCIRepository) (source.Session, error) {
	if obj.Undecodable != "" {
		return nil, failure.Stall(sourcev1.FailedReason, errors.New(obj.Undecodable))
	}
	host, name, err := registry.Parse(obj.Spec.URL)
	if err != nil {
		return nil, failure.Stall(sourcev1.URLInvalidReason, fmt.Errorf("spec.url is invalid: %w", err))
	}
	want, err := parseReference(obj.Spec.Reference, obj.GetLayerMediaType())
	if err != nil {
		return nil, err
	}
	s := &session{opener: o, object: obj, host: host, name: name, want: want}
	if s.verifier, err = o.Trust.Verifier(ctx, o.Credentials, obj.Namespace, obj.Spec.Verify); err != nil {
		return nil, err
	}
	if s.shape, err = shapeChecksum(obj); err != nil {
		return nil, err
	}
	s.checksum, err = configChecksum(s.shape, s.verifier, host+"/"+name)
	return s, err
}

// session is one reconcile of one OCIRepository.
type session struct {
	opener     *Opener
	object     *sourcev1.OCIRepository
	host, name string
	want       reference
	verifier   verify.Verifier // nil when no proof is asked for
	// shape is the checksum over what shapes the artifact, checksum that over what shapes or proves it.
	shape, checksum string

	// What was learnt on the way.
	repository *registry.Repository
	document   *registry.Document
}

// remote reads the credentials once, and gives the upstream repository.
func (s *session) remote(ctx context.Context) (registry.Repository, error) {
	if s.repository != nil {
		return *s.repository, nil
	}
	spec := s.object.Spec
	request := auth.RegistryRequest{
		Namespace: s.object.Namespace, Host: s.host, Repository: s.name, Provider: spec.GetProvider(),
		ServiceAccountName: spec.ServiceAccountName, Insecure: spec.Insecure,
	}
	if spec.SecretRef != nil {
		request.SecretName = spec.SecretRef.Name
	}
	if spec.CertSecretRef != nil {
		request.CertSecretName = spec.CertSecretRef.Name
	}
	if spec.ProxySecretRef != nil {
		request.ProxySecretName = spec.ProxySecretRef.Name
	}
	found, err := s.opener.Credentials.Registry(ctx, request)
	if err != nil {
		return registry.Repository{}, err
	}
	s.repository = &registry.Repository{Host: s.host, Name: s.name, Insecure: spec.Insecure, Credential: found}
	return *s.repository, nil
}

// forget gives back what the manifest takes. Work that begins anew draws it anew.
func (s *session) forget(ctx context.Context) {
	if s.document != nil {
		registry.Release(ctx, s.document.Raw)
		s.document = nil
	}
}

// shapeChecksum is over what decides which bytes a manifest becomes. Fields that mean the same give the same.
func shapeChecksum(obj *sourcev1.OCIRepository) (string, error) {
	shape := struct {
		MediaType string  `json:"mediaType"`
		Operation string  `json:"operation"`
		Ignore    *string `json:"ignore"`
	}{obj.GetLayerMediaType(), obj.GetLayerOperation(), obj.Spec.Ignore}
	if shape.Operation == sourcev1.OCILayerCopy {
		shape.Ignore = nil // A copied layer is left as it is.
	}
	return source.ConfigChecksum("ocirepository", shape)
}

// configChecksum adds what proves a manifest. The repository is part of that, because signatures may name it.
func configChecksum(shape string, verifier verify.Verifier, repository string) (string, error) {
	if verifier == nil {
		return shape, nil
	}
	return source.ConfigChecksum("ocirepository", struct {
		Shape      string `json:"shape"`
		Trusted    string `json:"trusted"`
		Repository string `json:"repository"`
	}{shape, verifier.Fingerprint(), repository})
}
