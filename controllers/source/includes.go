package source

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// maxIncludes bounds how many objects are looked at in search of a cycle.
const maxIncludes = 1000

// Includes finds the artifacts of included GitRepository objects.
type Includes struct{ Artifacts }

// Included returns the current artifact of the named GitRepository in obj's namespace.
func (i Includes) Included(ctx context.Context, obj *sourcev1.GitRepository, name string) (storage.Artifact, error) {
	if err := i.refuseCycle(ctx, obj, name); err != nil {
		return storage.Artifact{}, err
	}
	artifact, err := i.Of(ctx, &sourcev1.GitRepository{}, GitRepositoryDir, obj.Namespace, name)
	switch {
	case errors.Is(err, source.ErrNoObject):
		return artifact, failure.Wait(sourcev1.NotFoundReason, 0, fmt.Errorf("could not get resource for include: %w", err))
	case errors.Is(err, source.ErrNoArtifact):
		return artifact, failure.Wait(sourcev1.NoArtifactReason, 0, errors.New("no artifact available for include"))
	case err != nil:
		return artifact, fmt.Errorf("get included GitRepository: %w", err)
	}
	return artifact, nil
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
		var included sourcev1.GitRepository
		if err := i.get(ctx, &included, obj.Namespace, next); err != nil {
			// A missing object includes nothing; Included reports it where it matters.
			continue
		}
		for _, include := range included.Spec.Include {
			queue = append(queue, include.GitRepositoryRef.Name)
		}
	}
	return nil
}
