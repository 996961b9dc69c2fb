// Package rebuild makes the artifact of a source anew from upstream, on the road that all artifacts take, so that it can be compared
// with what is served.
// It does not know what is served, nor who asks.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	ocisource "sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

// errUnable says that an object is of a kind, or has settings, that cannot be rebuilt by anybody but the controllers.
var errUnable = errors.New("cannot be rebuilt from here")

// timeout bounds all that is asked of upstream.
const timeout = 10 * time.Minute

// Rebuilder makes artifacts anew, in a folder that is empty before.
type Rebuilder struct {
	// Reader reads the Secrets that a spec names, as whoever asks.
	Reader client.Client
	// Dir is where the artifact and all that it takes to make it lie.
	Dir string
	// AllowLoopback lets connections go to this machine.
	AllowLoopback bool
}

// Artifact is one that was made anew.
type Artifact struct {
	Revision   string
	Digest     digest.Digest
	VerifiedBy string
	// Open reads the artifact, until it is closed.
	Open  func(context.Context) (io.ReadCloser, error)
	Close func() error
}

// Rebuild makes the artifact of a GitRepository or an OCIRepository that its status names. errUnable says why it is not
// possible; other errors are the pipeline's own.
func (r *Rebuilder) Rebuild(ctx context.Context, obj client.Object) (Artifact, error) {
	connections := transport.New(transport.Options{AllowLoopback: r.AllowLoopback})
	defer connections.Close()
	open, err := r.opener(obj, connections)
	if err != nil {
		return Artifact{}, err
	}
	root := filepath.Join(r.Dir, "storage")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return Artifact{}, fmt.Errorf("make a folder: %w", err)
	}
	store, err := local.Open(root, local.Options{})
	if err != nil {
		return Artifact{}, fmt.Errorf("open a storage: %w", err)
	}
	pipeline := source.Pipeline{Store: store, Limits: archive.Limits{}, Clock: clock.RealClock{}, Observer: blind{}}
	subject := source.Subject{Object: storage.Object{Kind: "source", Namespace: obj.GetNamespace(), Name: obj.GetName()}, UID: string(obj.GetUID()), Timeout: timeout}
	made, err := pipeline.Run(ctx, subject, open, func(context.Context, source.Change) error { return nil })
	if err != nil {
		return Artifact{}, errors.Join(err, store.Close())
	}
	current := made.Record.Current
	return Artifact{
		Revision: current.Revision, Digest: current.Digest, VerifiedBy: made.Record.VerifiedBy, Close: store.Close,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return store.Open(ctx, current.Path) },
	}, nil
}

// opener opens sessions for the object as it was when its artifact was made.
func (r *Rebuilder) opener(obj client.Object, connections *transport.Factory) (func(context.Context) (source.Session, error), error) {
	credentials := auth.New(r.Reader, auth.Options{Transport: connections})
	switch obj := obj.(type) {
	case *sourcev1.GitRepository:
		if len(obj.Spec.Include) > 0 {
			return nil, fmt.Errorf("%w: it includes other repositories", errUnable)
		}
		if obj.Spec.Provider != "" && obj.Spec.Provider != sourcev1.GitProviderGeneric && obj.Spec.Provider != sourcev1.GitProviderGitHub {
			return nil, fmt.Errorf("%w: provider %s logs in as the controllers", errUnable, obj.Spec.Provider)
		}
		client, err := git.New(git.Options{Transport: connections, TempDir: r.Dir, CacheDir: filepath.Join(r.Dir, "cache")})
		if err != nil {
			return nil, fmt.Errorf("make the git client: %w", err)
		}
		pinned := pinnedGit(obj)
		opener := gitsource.NewOpener(gitsource.Options{Client: client, Credentials: credentials, Artifacts: alone{}, TempDir: r.Dir})
		return func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, pinned) }, nil
	case *sourcev1.OCIRepository:
		if obj.Spec.Provider != "" && obj.Spec.Provider != sourcev1.GenericOCIProvider {
			return nil, fmt.Errorf("%w: provider %s logs in as the controllers", errUnable, obj.Spec.Provider)
		}
		client, err := registry.New(registry.Options{Transport: connections})
		if err != nil {
			return nil, fmt.Errorf("make the registry client: %w", err)
		}
		roots, err := verify.NewTUFRoots(verify.TUFOptions{Client: connections.Anonymous(), Way: func(ctx context.Context) string { return transport.ProxyOf(ctx).Identity() }})
		if err != nil {
			return nil, fmt.Errorf("make the trust roots: %w", err)
		}
		pinned := pinnedOCI(obj)
		opener := ocisource.NewOpener(ocisource.Options{
			Client: client, Credentials: credentials, TempDir: r.Dir, Trust: trust.Trust{Roots: roots, Revocation: connections.Anonymous()},
		})
		return func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, pinned) }, nil
	}
	return nil, fmt.Errorf("%w: it is neither a GitRepository nor an OCIRepository", errUnable)
}

// pinnedGit follows the spec's branch to the commit on record, which is proven to be on it. What follows a tag, a range or a name is left to
// find what it finds.
func pinnedGit(obj *sourcev1.GitRepository) *sourcev1.GitRepository {
	pinned := obj.DeepCopy()
	ref := pinned.Spec.Reference
	if obj.Status.Artifact == nil || ref != nil && (ref.Tag != "" || ref.SemVer != "" || ref.Name != "" || ref.Commit != "") {
		return pinned
	}
	branch := sourcev1.DefaultBranch
	if ref != nil && ref.Branch != "" {
		branch = ref.Branch
	}
	_, commit, found := strings.Cut(obj.Status.Artifact.Revision, "@")
	if _, hash, hashed := strings.Cut(commit, ":"); found && hashed {
		pinned.Spec.Reference = &sourcev1.GitRepositoryRef{Branch: branch, Commit: hash}
	}
	return pinned
}

// pinnedOCI is of the digest on record, unless the spec names one.
func pinnedOCI(obj *sourcev1.OCIRepository) *sourcev1.OCIRepository {
	pinned := obj.DeepCopy()
	if obj.Status.Artifact == nil || obj.Spec.Reference != nil && obj.Spec.Reference.Digest != "" {
		return pinned
	}
	revision := obj.Status.Artifact.Revision
	if of, err := digest.Parse(revision[strings.LastIndexByte(revision, '@')+1:]); err == nil {
		pinned.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: of.String()}
	}
	return pinned
}

// alone is a cluster without other objects.
type alone struct{}

func (alone) Included(context.Context, *sourcev1.GitRepository, string) (storage.Artifact, error) {
	return storage.Artifact{}, storage.ErrNotFound
}

func (alone) Body(context.Context, storage.Artifact) (io.ReadCloser, error) {
	return nil, storage.ErrNotFound
}

// blind observes nothing.
type blind struct{}

func (blind) Step(string, source.Stage, time.Duration) {}
func (blind) Stored(storage.Object, int64)             {}
func (blind) Run(string, bool)                         {}
