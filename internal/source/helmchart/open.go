// Package helmchart is the HelmChart kind of source: a HelmChart's spec in, a package of the chart out.
// It does not know how charts are built, how an index is read or a registry spoken to, or what becomes of the package.
package helmchart

import (
	"context"
	"errors"
	"fmt"
	"io"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/storage"
)

// maxKnown is of how many artifacts of other objects it is remembered which chart is in them.
const maxKnown = 4096

// Artifacts finds what is stored of other objects. Errors are source.ErrNoObject without one, and source.ErrNoArtifact
// where nothing is stored of it.
type Artifacts interface {
	// Stored is the current artifact of an object that has the kind by which charts name it.
	Stored(ctx context.Context, kind, namespace, name string) (storage.Artifact, error)
	// Body opens an artifact that Stored returned.
	Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error)
	// HelmRepository is the object, whatever is stored of it.
	HelmRepository(ctx context.Context, namespace, name string) (*sourcev1.HelmRepository, error)
	// HelmRepositories are all of a namespace.
	HelmRepositories(ctx context.Context, namespace string) ([]sourcev1.HelmRepository, error)
}

// Credentials reads what a spec refers to in Secrets.
type Credentials interface {
	trust.Secrets
	// Helm gives the credential for a repository that is a server of files, and its URL without user and password.
	Helm(ctx context.Context, request auth.HelmRequest) (credential.Login, string, error)
	// Registry gives the credential for a registry.
	Registry(ctx context.Context, request auth.RegistryRequest) (credential.Registry, error)
}

// Options are what an Opener works with. All are required but the limits.
type Options struct {
	Artifacts   Artifacts
	Credentials Credentials
	// Store has the artifacts of other objects.
	Store storage.Reader
	// Files gets packages and indexes from repositories that are servers of files, Registry those from registries.
	Files    *helm.Client
	Registry *registry.Client
	// Trust makes verifiers out of what a spec trusts.
	Trust trust.Trust
	// MaxIndexBytes bounds the index of a repository that no object follows.
	MaxIndexBytes int64
	// Limits bound charts, Archive the artifacts that they lie in.
	Limits  chart.Limits
	Archive archive.Limits
	// RevisionByContent has versions name the revision of a source at which a chart changed last, where they name one.
	RevisionByContent bool
}

// Opener opens sessions for HelmChart objects.
type Opener struct {
	Options

	// known is which chart a source has, by the source's artifact and what was looked for in it.
	known *lru.Cache[string, found]
	// looked is what indexes had of charts when these were looked at last, by namespace and name.
	looked *lru.Cache[string, seen]
}

// NewOpener returns an Opener.
func NewOpener(options Options) *Opener {
	known, _ := lru.New[string, found](maxKnown) // It fails for a size below one alone.
	looked, _ := lru.New[string, seen](maxSeen)
	return &Opener{Options: options, known: known, looked: looked}
}

// found is a chart as its source has it.
type found struct {
	chart.Identity
	// Content names the very package, or what it is going to be made of, as well as the source can tell.
	Content string
	// entries names all versions that an index has of the chart.
	entries index.Hash
	// URL is where the package is, and Digest the SHA-256 that it has to have; empty where nobody says.
	URL, Digest string
	// Source is the artifact that the chart lies in, and Inputs the digest of all that it is made of, where that counts.
	Source, Inputs digest.Digest
	// Places are the parts of the source that it is made of.
	Places []string
}

// origin is a source as charts are taken from it. Its errors have reasons.
type origin interface {
	// look finds the chart, if that takes no slot; false where it does.
	look(ctx context.Context) (found, bool, error)
	// find finds it in any case.
	find(ctx context.Context) (found, error)
	// build makes the package with the build metadata.
	build(ctx context.Context, f found, metadata string) (*chart.Built, error)
	// share names who is shown the package there; empty where it is shown to one object alone.
	share(f found) string
}

// Open checks the spec and looks what is stored of the source.
func (o *Opener) Open(ctx context.Context, obj *sourcev1.HelmChart) (source.Session, error) {
	if obj.Undecodable != "" {
		return nil, failure.Stall(sourcev1.FailedReason, errors.New(obj.Undecodable))
	}
	s := &session{object: obj}
	var err error
	if s.shape, err = shapeChecksum(obj.Spec); err != nil {
		return nil, err
	}
	if obj.Spec.SourceRef.Kind != sourcev1.HelmRepositoryKind {
		if s.source, err = o.stored(ctx, obj); err != nil {
			return nil, err
		}
		s.from = &folder{opener: o, object: obj, source: s.source, shape: s.shape}
		return s, nil
	}
	repository, err := o.Artifacts.HelmRepository(ctx, obj.Namespace, obj.Spec.SourceRef.Name)
	if err != nil {
		return nil, unavailable(err)
	}
	if repository.Undecodable != "" {
		return nil, failure.Wait(sourcev1.SourceUnavailableReason, 0, fmt.Errorf("failed to get source: HelmRepository '%s': %s", repository.Name, repository.Undecodable))
	}
	if repository.Spec.GetType() == sourcev1.HelmRepositoryTypeOCI {
		s.registered, err = o.registryOrigin(ctx, obj, repository)
		s.from = s.registered
		return s, err
	}
	if obj.Spec.Verify != nil {
		return nil, failure.At(source.StageBuild, failure.Retry(sourcev1.ChartVerificationErrorReason,
			errors.New("chart verification error: signatures are looked for in repositories of type 'oci' alone: remove spec.verify, or take the chart from a registry")))
	}
	if s.source, err = o.stored(ctx, obj); err != nil {
		return nil, err
	}
	s.from, err = o.indexOrigin(ctx, obj, repository, s.source)
	return s, err
}

// stored is what is stored of a chart's source.
func (o *Opener) stored(ctx context.Context, obj *sourcev1.HelmChart) (storage.Artifact, error) {
	ref := obj.Spec.SourceRef
	artifact, err := o.Artifacts.Stored(ctx, ref.Kind, obj.Namespace, ref.Name)
	if errors.Is(err, source.ErrNoArtifact) {
		return artifact, failure.Wait(sourcev1.NoSourceArtifactReason, 0, fmt.Errorf("no artifact available for %s source '%s'", ref.Kind, ref.Name))
	}
	return artifact, unavailable(err)
}

// unavailable says that there is no source. It is waited for: its creation wakes the chart.
func unavailable(err error) error {
	if errors.Is(err, source.ErrNoObject) {
		return failure.Wait(sourcev1.SourceUnavailableReason, 0, fmt.Errorf("failed to get source: %w", err))
	}
	return err
}

// shapeChecksum is over what decides which package a spec stands for, beside what its source has.
func shapeChecksum(spec sourcev1.HelmChartSpec) (string, error) {
	return source.ConfigChecksum("helmchart", struct {
		Chart         string                                 `json:"chart"`
		Version       string                                 `json:"version"`
		SourceRef     sourcev1.LocalHelmChartSourceReference `json:"sourceRef"`
		Strategy      string                                 `json:"strategy"`
		ValuesFiles   []string                               `json:"valuesFiles"`
		IgnoreMissing bool                                   `json:"ignoreMissing"`
	}{
		spec.Chart, spec.GetVersion(),
		sourcev1.LocalHelmChartSourceReference{Kind: spec.SourceRef.Kind, Name: spec.SourceRef.Name},
		spec.GetReconcileStrategy(), spec.GetValuesFiles(), spec.IgnoreMissingValuesFiles,
	})
}
