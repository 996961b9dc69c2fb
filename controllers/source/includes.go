package source

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/storage"
)

// maxIncludes bounds how many objects are looked at in search of a cycle.
const maxIncludes = 1000

// Includes finds the artifacts of included GitRepository objects. What the store knows of an object counts, not
// what its status says.
type Includes struct {
	Reader client.Reader
	Store  storage.Store
}

// Included returns the current artifact of the named GitRepository in obj's namespace.
func (i Includes) Included(ctx context.Context, obj *sourcev1.GitRepository, name string) (storage.Artifact, error) {
	if err := i.refuseCycle(ctx, obj, name); err != nil {
		return storage.Artifact{}, err
	}
	included, err := i.get(ctx, obj.Namespace, name)
	if apierrors.IsNotFound(err) {
		return storage.Artifact{}, failure.Wait(sourcev1.NotFoundReason, 0, fmt.Errorf("could not get resource for include: %w", err))
	}
	if err != nil {
		return storage.Artifact{}, fmt.Errorf("get included GitRepository: %w", err)
	}
	record, err := i.Store.Record(ctx, storage.Object{Kind: GitRepositoryDir, Namespace: obj.Namespace, Name: name})
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) || err == nil && record.UID != string(included.UID) {
		return storage.Artifact{}, failure.Wait(sourcev1.NoArtifactReason, 0, errors.New("no artifact available for include"))
	}
	return record.Current, err
}

// Body opens an artifact that Included returned. An object that was made anew since may have other bytes under its path.
func (i Includes) Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error) {
	body, err := i.Store.Open(ctx, artifact.Path)
	if err != nil {
		return nil, err
	}
	if body.Stat().Digest != artifact.Digest {
		return nil, errors.Join(storage.PathError(artifact.Path, storage.ErrNotFound), body.Close())
	}
	return body, nil
}

// refuseCycle holds back an object that includes itself, directly or through others: every build of one would trigger
// the next of the other, without end. It is no stall, because an edit of any object of the cycle ends it.
func (i Includes) refuseCycle(ctx context.Context, obj *sourcev1.GitRepository, name string) error {
	seen := map[string]bool{}
	queue := []string{name}
	for len(queue) > 0 && len(seen) < maxIncludes {
		next := queue[0]
		queue = queue[1:]
		if next == obj.Name {
			return failure.Wait(sourcev1.NoArtifactReason, 0,
				errors.New("it leads back to this GitRepository: take one of the includes out of the cycle"))
		}
		if seen[next] {
			continue
		}
		seen[next] = true
		included, err := i.get(ctx, obj.Namespace, next)
		if err != nil {
			// A missing object includes nothing; Included reports it where it matters.
			continue
		}
		for _, include := range included.Spec.Include {
			queue = append(queue, include.GitRepositoryRef.Name)
		}
	}
	return nil
}

func (i Includes) get(ctx context.Context, namespace, name string) (*sourcev1.GitRepository, error) {
	var included sourcev1.GitRepository
	err := i.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &included)
	return &included, err
}
