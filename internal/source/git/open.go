// Package git is the Git kind of source: a GitRepository's spec in, a commit's tree out.
// It does not know how commits travel (package git of the engine) nor what becomes of the tree.
package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// maxFacts is how many times of commits are remembered, and how many proofs of where they are.
const maxFacts = 4096

// maxSparse bounds the paths of a sparse checkout, which each submodule is compared with.
const maxSparse = 1000

// Credentials reads the credentials that a spec refers to.
type Credentials interface {
	Git(ctx context.Context, request auth.GitRequest) (credential.Git, error)
	// Data gives the entries of a Secret that the field names.
	Data(ctx context.Context, namespace, secretName, field string) (map[string][]byte, error)
}

// Artifacts gives the artifacts of other GitRepository objects, for includes.
type Artifacts interface {
	// Included returns the current artifact of the GitRepository of that name in obj's namespace. Its error is a
	// failure.Wait with the reason NotFound or NoArtifact while there is none.
	Included(ctx context.Context, obj *sourcev1.GitRepository, name string) (storage.Artifact, error)
	// Body opens an artifact.
	Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error)
}

// Options are what an Opener works with. All are required but Limits and TempDir.
type Options struct {
	Client      *git.Client
	Credentials Credentials
	Artifacts   Artifacts
	// Limits bound the included artifacts while they are read.
	Limits archive.Limits
	// TempDir holds included artifacts while they are archived again; empty means the system's.
	TempDir string
}

// Opener opens sessions for GitRepository objects.
type Opener struct {
	Options
	times  *lru.Cache[string, time.Time]
	proven *lru.Cache[string, struct{}]
	signed *lru.Cache[string, git.Signed]
}

// NewOpener returns an Opener.
func NewOpener(options Options) *Opener {
	times, _ := lru.New[string, time.Time](maxFacts) // It fails for a size below one alone.
	proven, _ := lru.New[string, struct{}](maxFacts)
	signed, _ := lru.New[string, git.Signed](maxSigned)
	return &Opener{Options: options, times: times, proven: proven, signed: signed}
}

// Open checks the spec and looks up the includes. Credentials are read when upstream has to be asked.
func (o *Opener) Open(ctx context.Context, obj *sourcev1.GitRepository) (source.Session, error) {
	if obj.Undecodable != "" {
		return nil, failure.Stall(sourcev1.FailedReason, errors.New(obj.Undecodable))
	}
	if len(obj.Spec.SparseCheckout) > maxSparse {
		return nil, failure.Stall(sourcev1.FailedReason, fmt.Errorf("spec.sparseCheckout has %d entries, more than %d", len(obj.Spec.SparseCheckout), maxSparse))
	}
	if err := git.ValidateURL(obj.Spec.URL); err != nil {
		return nil, failure.Stall(sourcev1.URLInvalidReason, fmt.Errorf("spec.url is invalid: %w", err))
	}
	want, err := parseReference(obj.Spec.Reference)
	if err != nil {
		return nil, failure.Stall(sourcev1.GitOperationFailedReason, err)
	}
	s := &session{opener: o, namespace: obj.Namespace, spec: obj.Spec, want: want}
	if s.included, err = o.included(ctx, obj); err != nil {
		return nil, err
	}
	if s.trusted, err = s.whom(ctx); err != nil {
		return nil, err
	}
	if s.shape, err = shapeChecksum(obj.Spec, s.included); err != nil {
		return nil, err
	}
	s.checksum, err = s.configChecksum()
	return s, err
}

// session is one reconcile of one GitRepository.
type session struct {
	opener    *Opener
	namespace string
	spec      sourcev1.GitRepositorySpec
	want      reference
	included  []storage.Artifact
	trusted   map[string][]byte // the entries with the keys; nil when no proof is asked for
	// shape is the checksum of what a commit's artifact is made by, checksum also of what proves the commit.
	shape, checksum string
	// newest are the tags of the newest version in the range, which build metadata alone may tell apart.
	newest []git.Ref
	// chosen is where the commit was found, with the annotated tag that leads to it.
	chosen git.Want
}

// remote reads the credentials and gives the upstream repository.
func (s *session) remote(ctx context.Context) (git.Remote, error) { return s.remoteAt(ctx, s.spec.URL) }

// remoteAt gives a repository at another URL, with the credentials that the spec's references lead to there.
func (s *session) remoteAt(ctx context.Context, address string) (git.Remote, error) {
	request := auth.GitRequest{
		Namespace: s.namespace, URL: address, Provider: s.spec.Provider, ServiceAccountName: s.spec.ServiceAccountName,
	}
	if s.spec.SecretRef != nil {
		request.SecretName = s.spec.SecretRef.Name
	}
	if s.spec.ProxySecretRef != nil {
		request.ProxySecretName = s.spec.ProxySecretRef.Name
	}
	found, err := s.opener.Credentials.Git(ctx, request)
	if err != nil {
		return git.Remote{}, err
	}
	return git.Remote{URL: address, Credential: found}, nil
}
