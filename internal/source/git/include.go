package git

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// maxIncludes bounds the artifacts that are opened for one.
const maxIncludes = 100

// included looks up the artifacts that the spec includes, in its order. Includes stay in the object's namespace.
func (o *Opener) included(ctx context.Context, obj *sourcev1.GitRepository) ([]storage.Artifact, error) {
	if len(obj.Spec.Include) > maxIncludes {
		return nil, failure.Stall(sourcev1.FailedReason, fmt.Errorf("spec.include has %d entries, more than %d", len(obj.Spec.Include), maxIncludes))
	}
	artifacts := make([]storage.Artifact, 0, len(obj.Spec.Include))
	for _, include := range obj.Spec.Include {
		artifact, err := o.Artifacts.Included(ctx, obj, include.GitRepositoryRef.Name)
		if err != nil {
			return nil, &source.StageError{
				Stage: source.StageInclude,
				Err:   fmt.Errorf("include %q: %w", include.GitRepositoryRef.Name, err),
			}
		}
		artifacts = append(artifacts, artifact)
	}
	return artifacts, nil
}

// contentConfig is everything in a GitRepository that shapes its artifact beside the commit itself. The order of
// its fields is part of every checksum.
type contentConfig struct {
	Ignore         *string         `json:"ignore"`
	Include        []includeConfig `json:"include"`
	SparseCheckout []string        `json:"sparseCheckout,omitempty"`
	Submodules     bool            `json:"recurseSubmodules,omitempty"`
}

// includeConfig is one include and what it brought in.
type includeConfig struct {
	Name     string        `json:"name"`
	FromPath string        `json:"fromPath"`
	ToPath   string        `json:"toPath"`
	Revision string        `json:"revision"`
	Digest   digest.Digest `json:"digest"`
}

// shapeChecksum is the checksum of a spec with the artifacts it includes now.
func shapeChecksum(spec sourcev1.GitRepositorySpec, included []storage.Artifact) (string, error) {
	config := contentConfig{Ignore: spec.Ignore, SparseCheckout: spec.SparseCheckout, Submodules: spec.RecurseSubmodules}
	for i, include := range spec.Include {
		config.Include = append(config.Include, includeConfig{
			Name:     include.GitRepositoryRef.Name,
			FromPath: include.FromPath,
			ToPath:   include.GetToPath(),
			Revision: included[i].Revision,
			Digest:   included[i].Digest,
		})
	}
	return source.ConfigChecksum("gitrepository", config)
}
